import { X509Certificate } from "node:crypto";
import type { Json } from "../../debug/api-types.ts";
import { at, textAt } from "../json-path.ts";
import type { ProxyResource } from "./dumped-resources.ts";
import type { ProxyConfigFilter, Section } from "./section.ts";

/** `istioctl proxy-config secret`: a row for each certificate and CA. Keys are not shown: the control plane gives none away. */
export function secretSection(secrets: readonly ProxyResource[], filter: Pick<ProxyConfigFilter, "name">): Section {
  const kept = secrets.filter(({ name }) => filter.name === undefined || name === filter.name);
  return {
    title: "secrets",
    header: ["RESOURCE NAME", "TYPE", "NAMES", "SERIAL NUMBER", "NOT AFTER", "NOT BEFORE"],
    entries: kept.map((resource) => ({ resource, rows: [[resource.name, ...cellsOf(resource.resource)]] })),
  };
}

function cellsOf(secret: Json): readonly string[] {
  const chain = at(secret, "tlsCertificate", "certificateChain");
  return chain === undefined
    ? ["CA", ...certificateCells(at(secret, "validationContext", "trustedCa"))]
    : ["Cert Chain", ...certificateCells(chain)];
}

/** The first certificate; of one in a file of the proxy's machine only the path is known here. */
function certificateCells(source: Json | undefined): readonly string[] {
  const file = textAt(source, "filename");
  if (file !== "") return [`file ${file}`, "", "", ""];
  try {
    const { subjectAltName, subject, serialNumber, validTo, validFrom } = new X509Certificate(
      Buffer.from(textAt(source, "inlineBytes"), "base64"),
    );
    return [subjectAltName ?? subject.replaceAll("\n", ", "), serialNumber, isoTime(validTo), isoTime(validFrom)];
  } catch {
    return ["cannot be read", "", "", ""];
  }
}

const isoTime = (time: string): string => new Date(time).toISOString().replace(".000Z", "Z");
