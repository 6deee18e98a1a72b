import { chmodSync, mkdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, assert, beforeAll, describe, it } from "vitest";
import { eventually } from "../../support/wait.ts";
import type { KubeObject } from "../kube-object.ts";
import {
  echoImage,
  idleImage,
  type NodeCluster,
  nodeClusterImpossible,
  type Pod,
  programImage,
  startNodeCluster,
} from "../start-node-cluster.ts";
import type { Image } from "./image.ts";

const reason = nodeClusterImpossible();
if (reason !== undefined) console.warn(`tests of the nodelet's containers are skipped: ${reason}`);

const shellImage: Image = { entrypoint: ["sh", "-c"], args: ["true"] };
const notes = join(tmpdir(), `istio-notes-${process.pid}`);

/** Does nothing until it is asked to end, as the first process of a container must do by itself. */
const WAIT = "while :; do sleep 1000 & wait $!; done";
/** Pods write down what happens to them where the test can read it. */
const noted = (name: string): readonly string[] => readFileSync(join(notes, name), "utf8").trim().split("\n");
const NOTES = `{name: notes, hostPath: {path: ${notes}}}`;
const MOUNT = "volumeMounts: [{name: notes, mountPath: /notes}]";

const SETTINGS = `
apiVersion: v1
kind: ConfigMap
metadata: {name: settings, namespace: default}
data: {colour: blue, size: "7"}
---
apiVersion: v1
kind: Secret
metadata: {name: keys, namespace: default}
stringData: {password: sesame}
`;

const DETAILED = `
apiVersion: v1
kind: Pod
metadata: {name: detailed, namespace: default, labels: {app: detailed}, annotations: {note: 'a "b"'}}
spec:
  securityContext: {fsGroup: 1337}
  initContainers:
  - {name: first, image: shell, args: ["sleep 0.3; umask 0; echo first >> /notes/order"], ${MOUNT}}
  - name: beside
    image: echo
    restartPolicy: Always
    args: [--http, "9000", --delay, "300"]
    startupProbe: {tcpSocket: {port: 9000}, periodSeconds: 1, failureThreshold: 30}
  - {name: second, image: shell, args: ["curl -sS 127.0.0.1:9000 >/dev/null && echo second >> /notes/order"], ${MOUNT}}
  containers:
  - name: main
    image: shell
    command: [sh, -c, "echo noted > /dev/stdout; echo main $(GREETING) '$$(X)' >> /notes/order; trap 'exit 0' TERM; ${WAIT}"]
    securityContext:
      runAsUser: 1000
      runAsGroup: 2000
      readOnlyRootFilesystem: true
      allowPrivilegeEscalation: false
      capabilities: {drop: [ALL]}
    resources: {limits: {cpu: 1500m}, requests: {memory: 64Mi}}
    envFrom: [{prefix: SET_, configMapRef: {name: settings}}, {secretRef: {name: absent, optional: true}}]
    env:
    - {name: NAME, valueFrom: {fieldRef: {fieldPath: metadata.name}}}
    - {name: APP, valueFrom: {fieldRef: {fieldPath: "metadata.labels['app']"}}}
    - {name: ADDRESS, valueFrom: {fieldRef: {fieldPath: status.podIP}}}
    - {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}
    - {name: CPUS, valueFrom: {resourceFieldRef: {resource: limits.cpu}}}
    - {name: MEMORY, valueFrom: {resourceFieldRef: {resource: requests.memory, divisor: 1Mi}}}
    - {name: COLOUR, valueFrom: {configMapKeyRef: {name: settings, key: colour}}}
    - {name: PASSWORD, valueFrom: {secretKeyRef: {name: keys, key: password}}}
    - {name: GREETING, value: "hello-$(NAME)"}
    volumeMounts:
    - {name: notes, mountPath: /notes}
    - {name: settings, mountPath: /etc/app/settings}
    - {name: settings, mountPath: /etc/app/one, subPath: size}
    - {name: scratch, mountPath: /etc/app/settings/inner}
    - {name: about, mountPath: /etc/about}
    - {name: token, mountPath: /var/run/secrets/tokens}
    - {name: scratch, mountPath: /scratch}
  volumes:
  - ${NOTES}
  - {name: scratch, emptyDir: {medium: Memory}}
  - {name: settings, configMap: {name: settings}}
  - {name: about, downwardAPI: {items: [{path: annotations, fieldRef: {fieldPath: metadata.annotations}}]}}
  - {name: token, projected: {sources: [{serviceAccountToken: {path: istio-token, audience: istio-ca, expirationSeconds: 43200}}]}}
`;

const PROBED = `
apiVersion: v1
kind: Pod
metadata: {name: probed, namespace: default, labels: {app: probed}}
spec:
  terminationGracePeriodSeconds: 5
  containers:
  - name: main
    image: echo
    args: [--http, "8080", --grpc, "7070"]
    readinessProbe: {grpc: {port: 7070}, periodSeconds: 1}
    livenessProbe: {exec: {command: [curl, -sfS, "127.0.0.1:8080/healthz"]}, periodSeconds: 1, timeoutSeconds: 5, failureThreshold: 2, initialDelaySeconds: 1}
`;

const ENDING = `
apiVersion: v1
kind: Pod
metadata: {name: ending, namespace: default, labels: {app: ending}}
spec:
  terminationGracePeriodSeconds: 10
  initContainers:
  - name: beside
    image: shell
    restartPolicy: Always
    args: ["trap 'echo sidecar ended >> /notes/end; exit 0' TERM; ${WAIT}"]
    ${MOUNT}
  containers:
  - name: main
    image: shell
    args: ["echo started >> /notes/end; trap 'sleep 0.3; echo main ended >> /notes/end; exit 0' TERM; ${WAIT}"]
    lifecycle:
      postStart: {exec: {command: [sh, -c, "while [ ! -s /notes/end ]; do sleep 0.05; done; echo postStart >> /notes/end"]}}
      preStop: {exec: {command: [sh, -c, "sleep 0.3; echo preStop >> /notes/end"]}}
    ${MOUNT}
  - {name: later, image: shell, args: ["echo later >> /notes/end; trap 'exit 0' TERM; ${WAIT}"], ${MOUNT}}
  volumes: [${NOTES}]
`;

const JOB = `
apiVersion: batch/v1
kind: Job
metadata: {name: once, namespace: default}
spec:
  template:
    metadata: {labels: {app: once}}
    spec:
      restartPolicy: OnFailure
      initContainers: [{name: beside, image: idle, restartPolicy: Always}]
      containers: [{name: main, image: shell, args: ["[ -e /notes/tried ] || { touch /notes/tried; exit 3; }"], ${MOUNT}}]
      volumes: [${NOTES}]
`;

const intercepted = (name: string, capabilities: string): string => `
apiVersion: v1
kind: Pod
metadata: {name: ${name}, namespace: default, labels: {app: ${name}}}
spec:
  restartPolicy: Never
  initContainers:
  - name: istio-init
    image: docker.io/istio/proxyv2:1.27.0
    args: [istio-iptables, -p, "15001", -z, "15006", -u, "1337", -m, REDIRECT, -i, "*", -x, "", -b, "*", -d, "15090,15021,15020"]
    securityContext: {runAsUser: 0, runAsGroup: 0, capabilities: {drop: [ALL], add: [${capabilities}]}}
  containers: [{name: echo, image: echo, args: [--http, "15006"]}]
`;

describe.skipIf(reason !== undefined)("containers of a pod", () => {
  let cluster: NodeCluster;

  beforeAll(async () => {
    mkdirSync(notes);
    chmodSync(notes, 0o777);
    const images = { echo: echoImage, idle: idleImage, shell: shellImage, proxyv2: programImage("istio-agent") };
    cluster = await startNodeCluster({ images, firstBackOffMs: 100 });
    await cluster.client.apply(SETTINGS);
  });
  afterAll(async () => {
    await cluster?.stop();
    rmSync(notes, { recursive: true, force: true });
  });

  const apply = async (yaml: string, app: string): Promise<void> => {
    await cluster.client.apply(yaml);
    await cluster.node.readyPods("default", `app=${app}`);
  };
  const run = async (pod: string, script: string): Promise<string> =>
    (await cluster.node.exec(`default/${pod}`, ["sh", "-c", script])).stdout.trim();
  const pod = async (name: string): Promise<Pod> =>
    (await cluster.client.get<Pod>("Pod", `default/${name}`)) ?? assert.fail(`no pod ${name}`);

  it("start in order, sidecars staying, with the environment, user and files that the pod says", async () => {
    await apply(DETAILED, "detailed");
    await eventually("the container has come to its second line", () => noted("order").length === 3);
    assert.deepEqual(noted("order"), ["first", "second", "main hello-detailed $(X)"]);
    assert.equal(cluster.node.logs("default/detailed"), "noted\n");
    const address = (await pod("detailed")).status?.podIP;
    const variables = "$NAME $APP $ADDRESS $NODE $CPUS $MEMORY $COLOUR $PASSWORD $SET_size";
    assert.equal(await run("detailed", `echo ${variables}`), `detailed detailed ${address} node 2 64 blue sesame 7`);
    assert.equal(await run("detailed", "echo $(id -u) $(id -g) $(id -G | tr ' ' '\\n' | grep -c 1337)"), "1000 2000 1");
    assert.equal(await run("detailed", "grep -c 'CapBnd:.0000000000000000' /proc/self/status"), "1");
    assert.equal(
      await run("detailed", "touch /x 2>&1; touch /scratch/y && stat -c %g /scratch/y"),
      "touch: cannot touch '/x': Read-only file system\n1337",
    );
    assert.equal(await run("detailed", "cat /etc/app/settings/colour /etc/app/one"), "blue7");
    assert.equal(await run("detailed", "cat /etc/about/annotations"), 'note="a \\"b\\""');
    assert.equal(await run("detailed", "hostname; echo $$ > /dev/null; ls /proc | grep -c '^1$'"), "detailed\n1");
  });

  it("see changes of the objects that their volumes are made of, and new tokens", async () => {
    await cluster.client.patch("ConfigMap", "default/settings", { body: { data: { colour: "green", size: null } } });
    await eventually(
      "the new value",
      async () => (await run("detailed", "cat /etc/app/settings/colour; ls /etc/app/settings")) === "greencolour\ninner",
    );
    await cluster.client.patch("Pod", "default/detailed", { body: { metadata: { annotations: { note: "c" } } } });
    await eventually("the new annotation", async () => (await run("detailed", "cat /etc/about/annotations")) === 'note="c"');
    const token = "/var/run/secrets/tokens/istio-token";
    const before = await run("detailed", `cat ${token}`);
    const claims = JSON.parse(Buffer.from(before.split(".")[1] ?? "", "base64url").toString()) as {
      readonly aud: readonly string[];
      readonly "kubernetes.io": { readonly pod: { readonly name: string } };
    };
    assert.deepEqual([claims.aud, claims["kubernetes.io"].pod.name], [["istio-ca"], "detailed"]);
    await cluster.node.rotateTokens("default/detailed");
    assert.notEqual(await run("detailed", `cat ${token}`), before);
  });

  it("are started again when their liveness probe fails", async () => {
    await apply(PROBED, "probed");
    const { status } = await pod("probed");
    await eventually("it is told to be ill", () => fetch(`http://${status?.podIP}:8080/health?status=500`, { method: "POST" }));
    await eventually("it was started again", async () => (await pod("probed")).status?.containerStatuses?.[0]?.restartCount !== 0);
    await cluster.node.readyPods("default", "app=probed");
  });

  it("are begun and ended by their hooks, sidecars last", async () => {
    await apply(ENDING, "ending");
    await eventually("the last container has begun", () => noted("end").length === 3);
    assert.deepEqual(noted("end"), ["started", "postStart", "later"]);
    await cluster.client.delete("Pod", "default/ending");
    await eventually("it is gone", async () => (await cluster.client.get("Pod", "default/ending")) === undefined);
    assert.deepEqual(noted("end").slice(3), ["preStop", "main ended", "sidecar ended"]);
  });

  it("are tried again until they succeed where that is the policy, and then the pod is done with its sidecars", async () => {
    await cluster.client.apply(JOB);
    const [done] = await eventually("it is done", async () => {
      const pods = await cluster.client.list<Pod>("Pod", { namespace: "default", labelSelector: "app=once" });
      return pods[0]?.status?.phase === "Succeeded" && pods;
    });
    assert.equal(done?.status?.containerStatuses?.[0]?.restartCount, 1);
    await eventually("the Job knows", async () => {
      const job = await cluster.client.get<KubeObject & { readonly status: { readonly succeeded?: number } }>("Job", "default/once");
      return job?.status.succeeded === 1;
    });
  });

  it("change the pod's network where they may, and fail where they may not", async () => {
    await apply(intercepted("caught", "NET_ADMIN, NET_RAW"), "caught");
    const url = `http://${(await pod("caught")).status?.podIP}:4321/`;
    const by = await eventually("what listens on 15006 answers", async () => (await fetch(url)).headers.get("x-served-by") ?? undefined);
    assert.equal(by, "caught");
    await cluster.client.apply(intercepted("helpless", ""));
    await eventually("it has failed", async () => (await pod("helpless")).status?.phase === "Failed");
  });

  it("wait for what is not there, and say for what", async () => {
    const yaml = "apiVersion: v1\nkind: Pod\nmetadata: {name: waiting, namespace: default, labels: {app: waiting}}\n";
    const spec =
      "spec: {containers: [{name: idle, image: idle, volumeMounts: [{name: v, mountPath: /v}]}], volumes: [{name: v, secret: {secretName: later}}]}\n";
    await cluster.client.apply(yaml + spec);
    await eventually("it says so", async () => JSON.stringify(await pod("waiting")).includes("Secret later not found"));
    await cluster.client.apply("apiVersion: v1\nkind: Secret\nmetadata: {name: later, namespace: default}\n");
    await cluster.node.readyPods("default", "app=waiting");
  });
});
