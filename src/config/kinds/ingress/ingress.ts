import { defined } from "../../parse/defined.ts";
import type { Fields } from "../../parse/fields.ts";
import { kubeKind } from "../kube-kind.ts";

/** Where an Ingress sends requests. */
export interface IngressBackend {
  readonly service?: string;
  readonly port?: number | string;
}

/** Requests an Ingress takes below one host. */
export interface IngressPath {
  readonly path?: string;
  readonly pathType?: string;
  readonly backend: IngressBackend;
}

/** What a mesh reads of an Ingress. */
export interface Ingress {
  readonly ingressClassName?: string;
  readonly defaultBackend?: IngressBackend;
  readonly rules: readonly { readonly host?: string; readonly paths: readonly IngressPath[] }[];
  readonly tls: readonly { readonly hosts: readonly string[]; readonly secretName?: string }[];
}

export const ingress = kubeKind<Ingress>({
  kind: "Ingress",
  group: "networking.k8s.io",
  versions: ["v1"],
  plural: "ingresses",
  singular: "ingress",
  shortNames: ["ing"],
  read(document) {
    const spec = document.object("spec");
    return defined({
      ingressClassName: spec.text("ingressClassName"),
      defaultBackend: spec.has("defaultBackend") ? readBackend(spec.object("defaultBackend")) : undefined,
      rules: spec
        .objects("rules")
        .map((rule) => defined({ host: rule.text("host"), paths: rule.object("http").objects("paths").map(readPath) })),
      tls: spec.objects("tls").map((tls) => defined({ hosts: tls.texts("hosts"), secretName: tls.text("secretName") })),
    });
  },
});

const readPath = (path: Fields): IngressPath =>
  defined({ path: path.text("path"), pathType: path.text("pathType"), backend: readBackend(path.object("backend")) });

function readBackend(backend: Fields): IngressBackend {
  const target = backend.object("service");
  const port = target.object("port");
  return defined({ service: target.text("name"), port: port.number("number") ?? port.text("name") });
}
