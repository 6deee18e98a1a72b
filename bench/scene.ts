import { mkdir, rename, rm, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";

/** How large a mesh is. Everything else about a scene follows from it by arithmetic, so equal shapes give equal bytes on every machine. */
export interface SceneShape {
  readonly services: number;
  readonly endpoints: number;
  readonly namespaces: number;
  readonly virtualServices: number;
  readonly destinationRules: number;
  /** Proxies that will connect: each is an endpoint of the service `app-<class>`, so it has inbound configuration too. */
  readonly proxies: number;
  /** Groups of identical proxies, as the pods of one Deployment are. */
  readonly classes: number;
  /** The proxies take virtual hosts one by one. */
  readonly vhds?: boolean;
}

/** One proxy of a scene, as its node describes it. */
export interface SceneProxy {
  readonly name: string;
  readonly namespace: string;
  readonly address: string;
  readonly app: string;
  readonly vhds: boolean;
}

/** A file to be replaced, and the text by which its effect is known in what proxies are sent. */
export interface SceneEdit {
  readonly file: string;
  readonly text: string;
  readonly marker: string;
}

const PORTS = [80, 8080] as const;
const DOMAIN = "svc.cluster.local";

const made = new WeakMap<SceneShape, ReadonlyMap<string, string>>();

/** All files of a scene, by path below `etc/istio`. Made once for each shape: changes are measured that take one of them. */
export function sceneFiles(shape: SceneShape): ReadonlyMap<string, string> {
  const files = made.get(shape) ?? makeFiles(shape);
  made.set(shape, files);
  return files;
}

function makeFiles(shape: SceneShape): ReadonlyMap<string, string> {
  const files = new Map<string, string>([["mesh.yaml", meshText(0)]]);
  for (let index = 0; index < shape.namespaces; index++) {
    const namespace = namespaceOf(index);
    const services = indexesIn(shape.services, shape.namespaces, index);
    const put = (name: string, documents: readonly string[]): void => {
      if (documents.length > 0) files.set(`conf/${namespace}/${name}.yaml`, documents.join("---\n"));
    };
    put(
      "services",
      services.map((service) => serviceText(shape, service)),
    );
    put(
      "rules",
      services.filter((service) => service < shape.destinationRules).map((service) => ruleText(shape, service)),
    );
    put(
      "routes",
      services.filter((service) => service < shape.virtualServices).map((service) => routeText(shape, service)),
    );
    put(
      "apps",
      indexesIn(shape.classes, shape.namespaces, index).map((app) => appText(shape, app)),
    );
  }
  for (const { file, text } of [endpointEdit(0), routeEdit(0), privateEdit(shape, 0)]) files.set(file, text);
  return files;
}

/** Writes a scene below a base directory, in place of what is there. */
export async function writeScene(home: string, shape: SceneShape): Promise<void> {
  await rm(join(home, "etc/istio"), { recursive: true, force: true });
  for (const [file, text] of sceneFiles(shape)) {
    const path = join(home, "etc/istio", file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
}

/** Replaces a file at once: what is half written never shows under its name. */
export async function replaceFile(home: string, { file, text }: Pick<SceneEdit, "file" | "text">): Promise<() => Promise<void>> {
  const temporary = join(home, "edit.tmp");
  await writeFile(temporary, text);
  return () => rename(temporary, join(home, "etc/istio", file));
}

/** The proxies of a scene, class by class in turn: neighbours are of different classes, as they are in a real mesh. */
export function sceneProxies(shape: SceneShape): readonly SceneProxy[] {
  return Array.from({ length: shape.proxies }, (_, index) => {
    const app = index % shape.classes;
    const namespace = namespaceOf(app % shape.namespaces);
    return { name: `app-${app}-${index}`, namespace, address: proxyAddress(index), app: `app-${app}`, vhds: shape.vhds === true };
  });
}

/** One endpoint of a service that has a file of its own. */
export function endpointEdit(step: number): SceneEdit {
  const marker = markedAddress(step);
  const endpoints = [`{address: 10.127.3.1, labels: {app: moving}}`, `{address: ${marker}, labels: {app: moving}}`];
  return {
    file: "conf/moving-endpoint.yaml",
    text: entryText({ name: "moving", namespace: namespaceOf(0), vip: vipOf(50_001), port: 80, endpoints }),
    marker,
  };
}

/** One endpoint in a file that holds all services of a namespace: what is added is the reading of the others. */
export function largeFileEdit(shape: SceneShape, step: number): SceneEdit {
  const file = `conf/${namespaceOf(0)}/services.yaml`;
  const marker = markedAddress(step);
  return { file, text: (sceneFiles(shape).get(file) ?? "").replace(`address: ${endpointAddress(0)},`, `address: ${marker},`), marker };
}

/** One route of one host that every proxy sees. */
export function routeEdit(step: number): SceneEdit {
  const marker = `route-${String(step).padStart(6, "0")}`;
  const [name, namespace] = ["routed", namespaceOf(0)];
  const text = [
    entryText({ name, namespace, vip: vipOf(50_002), port: 80, endpoints: ["{address: 10.127.4.1, labels: {app: routed}}"] }),
    markedRouteText({ name, namespace, marker, exportTo: "*" }),
  ].join("---\n");
  return { file: "conf/changing-route.yaml", text, marker };
}

/** One route that only the proxies of one namespace see. */
export function privateEdit(shape: SceneShape, step: number): SceneEdit {
  const marker = `private-${String(step).padStart(6, "0")}`;
  const [name, namespace] = ["secluded", privateNamespace(shape)];
  const text = [
    entryText({ name, namespace, vip: vipOf(50_003), port: 80, endpoints: ["{address: 10.127.5.1, labels: {app: secluded}}"] }),
    markedRouteText({ name, namespace, marker, exportTo: "." }),
  ].join("---\n");
  return { file: "conf/private-route.yaml", text, marker };
}

/** The namespace whose proxies see what `privateEdit` changes. */
export const privateNamespace = (shape: SceneShape): string => namespaceOf(Math.min(shape.namespaces, shape.classes) - 1);

/** A change of mesh-wide configuration that makes every cluster of every proxy another one. */
export const everythingEdit = (step: number): SceneEdit => ({ file: "mesh.yaml", text: meshText(step), marker: "" });

/** A remark in a file of many objects: it is read again, and nothing follows from it. */
export function remarkEdit(shape: SceneShape, step: number): SceneEdit {
  const file = `conf/${namespaceOf(0)}/services.yaml`;
  return { file, text: `# remark ${step}\n${sceneFiles(shape).get(file) ?? ""}`, marker: "" };
}

const meshText = (step: number): string => `connectTimeout: ${10 + (step % 100)}s\n`;

interface EntryParts {
  readonly name: string;
  readonly namespace: string;
  readonly vip: string;
  readonly port: number;
  readonly endpoints: readonly string[];
}

function entryText({ name, namespace, vip, port, endpoints }: EntryParts): string {
  return `${headText("ServiceEntry", name, namespace)}
  hosts: [${hostOf(name, namespace)}]
  addresses: [${vip}]
  location: MESH_INTERNAL
  resolution: STATIC
  ports:
  - {number: ${port}, name: http, protocol: HTTP, targetPort: 8080}
  endpoints:
${endpoints.map((endpoint) => `  - ${endpoint}`).join("\n")}
`;
}

function serviceText(shape: SceneShape, index: number): string {
  const name = `svc-${index}`;
  const endpoints = Array.from({ length: shape.endpoints }, (_, member) => {
    const number = index * shape.endpoints + member;
    const labels = `{app: ${name}, version: v${1 + (member % 2)}, security.istio.io/tlsMode: istio}`;
    return `{address: ${endpointAddress(number)}, labels: ${labels}, serviceAccount: ${name}, locality: region-${number % 2}/zone-${number % 3}}`;
  });
  return entryText({ name, namespace: namespaceIn(shape, index), vip: vipOf(index + 1), port: portOf(index), endpoints });
}

function appText(shape: SceneShape, index: number): string {
  const name = `app-${index}`;
  const endpoints = indexesIn(shape.proxies, shape.classes, index).map(
    (proxy) =>
      `{address: ${proxyAddress(proxy)}, labels: {app: ${name}, version: v1, security.istio.io/tlsMode: istio}, serviceAccount: ${name}}`,
  );
  return entryText({ name, namespace: namespaceIn(shape, index), vip: vipOf(40_000 + index), port: portOf(index), endpoints });
}

function ruleText(shape: SceneShape, index: number): string {
  const namespace = namespaceIn(shape, index);
  return `${headText("DestinationRule", `svc-${index}`, namespace)}
  host: ${hostOf(`svc-${index}`, namespace)}
  trafficPolicy:
    connectionPool: {http: {http2MaxRequests: ${100 + (index % 900)}}}
  subsets:
  - {name: v1, labels: {version: v1}}
  - {name: v2, labels: {version: v2}}
`;
}

function routeText(shape: SceneShape, index: number): string {
  const namespace = namespaceIn(shape, index);
  const host = hostOf(`svc-${index}`, namespace);
  const to = (subset: string): string =>
    index < shape.destinationRules
      ? `{host: ${host}, subset: ${subset}, port: {number: ${portOf(index)}}}`
      : `{host: ${host}, port: {number: ${portOf(index)}}}`;
  const weight = 1 + (index % 98);
  return `${headText("VirtualService", `svc-${index}`, namespace)}
  hosts: [${host}]
  http:
  - match:
    - headers: {x-user: {exact: user-${index % 1000}}}
    - uri: {prefix: /v${2 + (index % 5)}/}
    route:
    - destination: ${to("v2")}
    timeout: ${1 + (index % 30)}s
    retries: {attempts: ${1 + (index % 4)}, perTryTimeout: 2s, retryOn: "5xx,reset"}
  - route:
    - destination: ${to("v1")}
      weight: ${weight}
    - destination: ${to("v2")}
      weight: ${100 - weight}
`;
}

function markedRouteText({
  name,
  namespace,
  marker,
  exportTo,
}: {
  readonly name: string;
  readonly namespace: string;
  readonly marker: string;
  readonly exportTo: string;
}): string {
  const host = hostOf(name, namespace);
  return `${headText("VirtualService", name, namespace)}
  hosts: [${host}]
  exportTo: ["${exportTo}"]
  http:
  - headers: {response: {set: {x-marker: ${marker}}}}
    route:
    - destination: {host: ${host}, port: {number: 80}}
`;
}

const headText = (kind: string, name: string, namespace: string): string =>
  `apiVersion: networking.istio.io/v1\nkind: ${kind}\nmetadata: {name: ${name}, namespace: ${namespace}}\nspec:`;

const namespaceOf = (index: number): string => `ns-${index}`;
const namespaceIn = (shape: SceneShape, index: number): string => namespaceOf(index % shape.namespaces);
const hostOf = (name: string, namespace: string): string => `${name}.${namespace}.${DOMAIN}`;
const portOf = (index: number): number => PORTS[index % PORTS.length] ?? PORTS[0];
const vipOf = (number: number): string => `240.0.${number >> 8}.${number & 255}`;
const endpointAddress = (number: number): string => `10.${number >> 16}.${(number >> 8) & 255}.${number & 255}`;
const proxyAddress = (index: number): string => `10.64.${index >> 8}.${index & 255}`;

/** An address that no other endpoint has, of one width, so that no marker is part of another. */
const markedAddress = (step: number): string => `10.126.${100 + Math.floor(step / 100)}.${100 + (step % 100)}`;

/** The indexes below `total` that fall to one of `groups`. */
function indexesIn(total: number, groups: number, group: number): readonly number[] {
  return Array.from({ length: total }, (_, index) => index).filter((index) => index % groups === group);
}
