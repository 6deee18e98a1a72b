import { describe, expect, it } from "vitest";
import { redacted } from "./redact.ts";

describe("redacted", () => {
  it("hides what is secret at any depth, and leaves where it is and all else", () => {
    const chain = { filename: "/chain.pem" };
    expect(
      redacted({
        name: "tls",
        tlsCertificates: [
          { certificateChain: chain, privateKey: { inlineString: "hush" }, password: { filename: "/password" } },
          { certificateChain: { inlineString: "public" }, privateKey: { filename: "/key.pem" } },
        ],
        tls_certificate: { private_key: { inline_string: "hush" } },
        sessionTicketKeys: { keys: [{ inlineBytes: "hush" }] },
        credentials: { tokenSecret: { name: "token", sdsConfig: { ads: {} } } },
        timeout: 5,
      }),
    ).toEqual({
      name: "tls",
      tlsCertificates: [
        { certificateChain: chain, privateKey: { inlineString: "[redacted]" }, password: { filename: "/password" } },
        { certificateChain: { inlineString: "public" }, privateKey: { filename: "/key.pem" } },
      ],
      tls_certificate: { private_key: { inline_string: "[redacted]" } },
      sessionTicketKeys: { keys: [{ inlineBytes: Buffer.from("[redacted]").toString("base64") }] },
      credentials: { tokenSecret: { name: "token", sdsConfig: { ads: {} } } },
      timeout: 5,
    });
  });

  it("hides the login for a registry that agents fetch modules with", () =>
    expect(redacted({ keyValues: { ISTIO_META_WASM_IMAGE_PULL_SECRET: "hush", OWN: "seen" } })).toEqual({
      keyValues: { ISTIO_META_WASM_IMAGE_PULL_SECRET: "[redacted]", OWN: "seen" },
    }));
});
