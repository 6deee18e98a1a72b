import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { SecretSchema } from "../../src/gen/envoy/extensions/transport_sockets/tls/v3/secret_pb.js";
import { SECRET_TYPE } from "../../src/wire/type-urls.ts";
import { createCertificateIssuer } from "../support/certificates.ts";
import { tempDir } from "../support/cleanup.ts";
import { clientCredentials } from "../support/identity.ts";
import { startIstiod } from "../support/istiod.ts";
import { createIssuer } from "../support/tokens.ts";
import { startVaultServer } from "../support/vault-server.ts";
import { eventually } from "../support/wait.ts";
import { subscribe } from "../support/xds-subscriber.ts";

it("a gateway gets a credential that lies in Vault, the next version of it, and the last one while Vault is away", async () => {
  const [vault, ca] = [await startVaultServer(), await createCertificateIssuer("ca")];
  const [one, two] = [await ca.issue("DNS:a"), await ca.issue("DNS:a")];
  vault.put("istio/shop/cert", { "tls.crt": one.cert, "tls.key": one.key });
  const issuer = createIssuer("https://id.example.com");
  const home = await tempDir();
  await writeFile(join(home, "vault-token"), `${vault.token}\n`);
  const istiod = await startIstiod({
    home,
    env: { VAULT_REFRESH_INTERVAL: "200ms" },
    files: {
      "mesh.yaml": `vault: {address: "${vault.address}", tokenFile: vault-token}
tokenIssuers: [{issuer: "${issuer.name}", jwks: '${issuer.jwks}', identity: {namespace: ns, serviceAccount: sa}}]
`,
    },
  });
  const answers = subscribe({
    port: istiod.securePort,
    variant: "delta",
    node: { id: "router~10.9.9.9~edge.shop~shop.svc.cluster.local" },
    typeUrl: SECRET_TYPE,
    names: ["kubernetes://cert"],
    secure: { credentials: await clientCredentials(istiod), token: issuer.token({ aud: "istio-ca", ns: "shop", sa: "edge" }) },
  });
  const chain = (): string | undefined => {
    const last = answers.flatMap(({ resources }) => resources).at(-1);
    const type = last && fromBinary(SecretSchema, last.value).type;
    const bytes = type?.case === "tlsCertificate" ? type.value.certificateChain?.specifier : undefined;
    return bytes?.case === "inlineBytes" ? Buffer.from(bytes.value).toString() : undefined;
  };
  await eventually("the first comes", () => chain() === one.cert);
  vault.put("istio/shop/cert", { "tls.crt": two.cert, "tls.key": two.key });
  await eventually("the second comes", () => chain() === two.cert);
  vault.seal(true);
  await eventually("the fault is told", async () => (await (await istiod.debug("/ready?verbose")).text()).includes("Vault is sealed"));
  expect(chain()).toBe(two.cert);
  expect((await fetch(`http://127.0.0.1:${istiod.httpPort}/ready`)).status).toBe(200);
  expect(istiod.log()).not.toContain(vault.token);
});
