import { loopback } from "./loopback.ts";
import { request } from "./node-http.ts";

const ANSWER_MS = 5_000;

/** Asks Envoy's admin interface; rejects where it does not answer. */
export function askAdmin(port: number, path: string, method: "GET" | "POST" = "GET"): Promise<string> {
  return new Promise((resolve, reject) => {
    const sent = request({ host: "localhost", lookup: loopback, port, path, method, agent: false, timeout: ANSWER_MS }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (part: string) => {
        text += part;
      });
      response.on("end", () => resolve(text)).on("error", reject);
    });
    sent.on("timeout", () => sent.destroy(new Error(`no answer from Envoy's admin port ${port}`)));
    sent.on("error", reject).end();
  });
}
