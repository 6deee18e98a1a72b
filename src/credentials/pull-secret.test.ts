import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { readDocuments } from "../config/documents/read-documents.ts";
import { type ConfigObject, objectKey } from "../config/object.ts";
import { readObject } from "../config/read-object.ts";
import { storedPullSecrets } from "./pull-secret.ts";

const LOGIN = '{"auths":{"registry.example":{"auth":"aHVudGVyMg=="}}}';
const secretNamed = (name: string, type: string, entries: Readonly<Record<string, string>>): string =>
  `---\n${JSON.stringify({ apiVersion: "v1", kind: "Secret", metadata: { name, namespace: "shop" }, type, stringData: entries })}\n`;

const objects = new Map<string, ConfigObject>();
const text = [
  secretNamed("login", "kubernetes.io/dockerconfigjson", { ".dockerconfigjson": LOGIN }),
  secretNamed("opaque", "Opaque", { ".dockerconfigjson": LOGIN }),
  secretNamed("old", "kubernetes.io/dockercfg", { ".dockercfg": LOGIN }),
  secretNamed("empty", "kubernetes.io/dockerconfigjson", {}),
].join("");
for (const raw of readDocuments(text, { source: "test", file: "f.yaml", scope: "f.yaml" })) {
  const { object } = readObject(raw);
  if (object !== undefined) objects.set(objectKey(object), object);
}
const look = (name: string, namespace = "shop") => storedPullSecrets(objects).pullSecret({ namespace, name });

describe("a login for a registry", () => {
  it("is the content of a Secret of its type, and is shown to nobody", () => {
    const looked = look("login");
    assert.ok(looked.is === "found");
    assert.equal(looked.value.reveal(), LOGIN);
    assert.equal(JSON.stringify(looked.value), '"[redacted]"');
    assert.deepEqual(looked.objects, ["Secret/shop/login"]);
  });

  // Whoever may name a pull secret must not get at other Secrets by that.
  for (const name of ["opaque", "old", "empty"]) {
    it(`is not in a Secret of another type, or without the entry (${name})`, () => assert.equal(look(name).is, "broken"));
  }

  it("is not there where there is no such Secret, or one of another namespace", () => {
    assert.equal(look("other").is, "absent");
    assert.equal(look("login", "bank").is, "absent");
  });
});
