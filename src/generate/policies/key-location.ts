import { msOfDuration } from "../../base/duration.ts";
import type { JWTRule } from "../../gen/istio/security/v1beta1/request_authentication_pb.js";
import type { Service } from "../../model/service.ts";

/** Where the keys of an issuer are published: at a URL, or where the issuer's discovery document says. */
export interface KeyLocation {
  /** Key of the row that holds what was fetched. */
  readonly id: string;
  readonly uri: string;
  /** Where keys are found by the issuer's discovery document (OpenID Connect Discovery 1.0): the issuer, which the document must name. */
  readonly issuer?: string;
  readonly timeoutMs: number;
}

/** How long a fetch may take where the rule does not say; Istio's value. */
const FETCH_TIMEOUT_MS = 5_000;

/** Where the keys of a rule are fetched from; undefined where they stand in the rule itself. */
export function keyLocation({
  issuer,
  jwks,
  jwksUri,
  timeout,
}: Pick<JWTRule, "issuer" | "jwks" | "jwksUri" | "timeout">): KeyLocation | undefined {
  if (jwks !== "") return undefined;
  const timeoutMs = timeout === undefined ? FETCH_TIMEOUT_MS : msOfDuration(timeout);
  if (jwksUri !== "") return { id: `uri ${jwksUri}`, uri: jwksUri, timeoutMs };
  return { id: `issuer ${issuer}`, uri: `${issuer.replace(/\/$/, "")}/.well-known/openid-configuration`, issuer, timeoutMs };
}

export interface KeyServers {
  /** The service that a host means in the namespace of a policy. One that is hidden from there is none: its being there is nobody's business. */
  readonly visibleService: (host: string, namespace: string) => Pick<Service, "ports"> | undefined;
  readonly keyFetcher: "istiod" | "hybrid" | "envoy";
}

const DEFAULT_PORTS: Readonly<Record<string, number>> = { "http:": 80, "https:": 443 };

/** The cluster through which Envoy fetches the keys itself; undefined where it does not. */
export function keyCluster(
  { uri, issuer }: KeyLocation,
  namespace: string,
  { visibleService, keyFetcher }: KeyServers,
): string | undefined {
  if (keyFetcher === "istiod" || issuer !== undefined || !URL.canParse(uri)) return undefined;
  const { hostname, port, protocol } = new URL(uri);
  const number = port === "" ? DEFAULT_PORTS[protocol] : Number(port);
  if (number === undefined) return undefined;
  const known = (): boolean => visibleService(hostname, namespace)?.ports.some((one) => one.number === number) === true;
  return keyFetcher === "envoy" || known() ? `outbound|${number}||${hostname}` : undefined;
}
