import { join } from "node:path";
import { writePair } from "./certificates.ts";
import { askCertificate, SERVER_NAME } from "./identity.ts";
import { type Istiod, type IstiodOptions, startIstiod } from "./istiod.ts";
import { type ProxyOptions, type RunningProxy, startProxy } from "./proxy.ts";
import { createIssuer } from "./tokens.ts";

const issuer = createIssuer("https://id.example.com");

const MESH = `tokenIssuers:
- issuer: ${issuer.name}
  jwks: '${issuer.jwks}'
  audiences: [istio-ca]
  identity: {namespace: ns, serviceAccount: sa}
`;

/** A token of the issuer that `startSecureIstiod` believes. */
export const tokenFor = (namespace: string, serviceAccount: string): string =>
  issuer.token({ aud: "istio-ca", ns: namespace, sa: serviceAccount });

/** A control plane that believes the tokens of `tokenFor`. */
export const startSecureIstiod = ({ files, ...options }: IstiodOptions = {}): Promise<Istiod> =>
  startIstiod({ ...options, files: { "mesh.yaml": MESH, ...files } });

export interface SecureProxyOptions extends Omit<ProxyOptions, "xdsPort" | "tls"> {
  readonly serviceAccount?: string;
}

/** A real Envoy on the secure port, with a certificate of the mesh for its namespace and account. */
export async function startSecureProxy(istiod: Istiod, { serviceAccount = "edge", ...options }: SecureProxyOptions): Promise<RunningProxy> {
  const { key, chain } = await askCertificate(istiod, { token: tokenFor(options.namespace ?? "shop", serviceAccount) });
  const { certFile, keyFile } = await writePair({ cert: chain.join(""), key });
  return startProxy({
    ...options,
    xdsPort: istiod.securePort,
    tls: {
      rootCertFile: join(istiod.home, "etc/cacerts/root-cert.pem"),
      serverName: SERVER_NAME,
      client: { certificateFile: certFile, keyFile },
    },
  });
}
