import { it } from "vitest";
import { converse } from "../support/calls.ts";
import { tcpEcho } from "../support/echo.ts";
import { startIstiod } from "../support/istiod.ts";
import { freePort } from "../support/ports.ts";
import { listening, startProxy } from "../support/proxy.ts";
const undeclared = (port: number, endpoints: readonly string[]): string => `
apiVersion: v1
kind: Service
metadata: {name: any, namespace: shop}
spec:
  clusterIP: 127.0.0.7
  selector: {app: any}
  ports: [{name: any, port: ${port}, targetPort: ${port}}]
---
apiVersion: discovery.k8s.io/v1
kind: EndpointSlice
metadata: {name: any-1, namespace: shop, labels: {kubernetes.io/service-name: any}}
addressType: IPv4
ports: [{name: any, port: ${port}, protocol: TCP}]
endpoints: [{addresses: [${endpoints.join(", ")}], conditions: {ready: true}}]
`;
it("x", async () => {
    const port = await freePort();
    await tcpEcho("raw", { host: "127.0.1.1", port });
    const istiod = await startIstiod({ files: { "conf/any.yaml": undeclared(port, ["127.0.1.1"]) } });
    const p = await startProxy({ xdsPort: istiod.grpcPort, name: "client", address: "127.0.0.1" });
    await listening(port);
    for (const say of ["hello there\n","\u0000\u0001 x\n", "*3\r\n$3\r\nSET\r\n"]) {
    try { console.log(JSON.stringify(say), await converse({ port, say, lines: 2 })); } catch (e) { console.log(JSON.stringify(say), String(e)); }
    }
    console.log((await p.admin("/stats?filter=http_inspector|any|tcp|downstream")).split("\n").filter(l=>!/: 0$|No recorded/.test(l)).join("\n"));
    const d = JSON.parse(await p.admin("/config_dump?resource=dynamic_listeners")); for (const c of d.configs) console.log(JSON.stringify(c.active_state?.listener ?? c, null, 1).slice(0,9000)); console.log(await p.admin("/stats?filter=no_filter|rbac|tcp"));
});
