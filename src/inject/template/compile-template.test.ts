import { describe, expect, it } from "vitest";
import { compileTemplate } from "./compile-template.ts";

const DATA = {
  ObjectMeta: { name: "web", labels: { app: "web" }, annotations: { "a/b": "c", on: "true" } },
  Spec: { serviceAccountName: "shop", dnsPolicy: "None", containers: [{ name: "web", ports: [{ containerPort: 80 }] }, { name: "log" }] },
  Values: { global: { hub: "reg", tag: 7, on: true, off: false, list: ["x", "y"], nothing: null }, revision: "" },
  ProxyConfig: { holdApplicationUntilProxyStarts: true, interceptionMode: "REDIRECT", tracing: { zipkin: { address: "z:1" } } },
};

const run = (text: string): string => compileTemplate(text)(DATA);

describe("templates", () => {
  const table: readonly [template: string, want: string][] = [
    ["plain", "plain"],
    ["{{ .Values.global.hub }}/{{ .Values.global.tag }}", "reg/7"],
    ["a {{- .Values.revision -}} b", "ab"],
    ["{{/* nothing */}}x{{- /* }} */ -}} y", "xy"],
    ["{{ if .Values.global.on }}yes{{ else }}no{{ end }}", "yes"],
    ["{{ if .Values.global.off }}a{{ else if .Values.revision }}b{{ else }}c{{ end }}", "c"],
    ["{{ range $i, $c := .Spec.Containers }}{{ if $i }},{{ end }}{{ $c.Name }}{{ end }}", "web,log"],
    ["{{ range .Values.global.list }}<{{ . }}>{{ else }}none{{ end }}", "<x><y>"],
    ["{{ range .Values.global.nothing }}x{{ else }}none{{ end }}", "none"],
    ["{{ range $k, $v := .ObjectMeta.Labels }}{{ $k }}={{ $v }}{{ end }}", "app=web"],
    ["{{ range 3 }}{{ . }}{{ end }}", "012"],
    ['{{ range .Values.global.list }}{{ if eq . "y" }}{{ continue }}{{ end }}{{ . }}{{ end }}', "x"],
    ["{{ with .Values.global.hub }}{{ . }}{{ end }}{{ with .Values.missing }}x{{ else }}-{{ end }}", "reg-"],
    ["{{ $x := 1 }}{{ if true }}{{ $x = 2 }}{{ end }}{{ $x }}", "2"],
    ['{{ $l := list }}{{ range .Spec.Containers }}{{ $l = append $l .Name }}{{ end }}{{ $l | join "+" }}', "web+log"],
    ['{{ define "t" }}[{{ .name }}]{{ end }}{{ template "t" .ObjectMeta }}', "[web]"],
    ["{{ index .ObjectMeta.Annotations `a/b` | default `z` | quote }}", '"c"'],
    ["{{ index .ObjectMeta.Annotations `no` | default (printf `%s-%d` `z` 1) }}", "z-1"],
    ["{{ or .Values.revision .Values.global.hub }}{{ and .Values.global.off (fail `never`) }}", "regfalse"],
    ["{{ not .Values.global.on }} {{ ne 1 2 }} {{ ge (len .Spec.Containers) 2 }}", "false true true"],
    ["{{ (.Values.missing).deeper }}{{ .Values.a.b.c }}", ""],
    ["{{ .ProxyConfig.HoldApplicationUntilProxyStarts.GetValue }} {{ .ProxyConfig.InterceptionMode.String }}", "true REDIRECT"],
    ["{{ .ProxyConfig.GetTracing.GetZipkin.GetAddress }}", "z:1"],
    ['{{ .Spec.ServiceAccountName }} {{ .Spec.DNSPolicy }} {{ eq .Spec.NodeName "" }}', "shop None true"],
    ["{{ annotation .ObjectMeta `on` false }} {{ annotation .ObjectMeta `off` false }}", "true false"],
    ["{{ isset .ObjectMeta.Annotations `on` }} {{ contains `w` .ObjectMeta.Name }}", "true true"],
    ["{{ excludeInboundPort 15020 `1, 2` }} {{ excludeInboundPort 0 `1` }}", "1,2,15020 1"],
    ["{{ toYaml .Values.global.list | indent 2 }}|{{ toYaml .ObjectMeta.Labels | nindent 4 }}", '- x\n  - "y"\n  |\n    app: web\n    '],
    ["{{ structToJSON (index .Spec.Containers 0).Ports }}", '[{"containerPort":80}]'],
    ["{{ `web-` | trimAll `-` | trunc 2 | upper }}", "WE"],
    ['{{ omitNil (fromJSON `{"a":null,"b":{"c":null},"d":1}`) | toJson }}', '{"d":1}'],
    ["{{ ternary 1 2 (hasKey .ObjectMeta.Labels `app`) }}{{ dict `a` 1 | toJson }}", '1{"a":1}'],
  ];
  for (const [template, want] of table) it(template, () => expect(run(template)).toBe(want));

  const wrong: readonly [template: string, message: RegExp][] = [
    ["{{ if .a }}", /line 1: \{\{if\}\} has no \{\{end\}\}/],
    ["a\nb {{ end }}", /line 2: \{\{end\}\} belongs to nothing/],
    ["{{ nosuch 1 }}", /line 1: there is no function nosuch/],
    ["\n{{ .a | }}", /line 2: a value is missing/],
    ["{{ $x }}", /variable \$x is not declared/],
    ["{{ (1 }}", /closing parenthesis/],
    ["{{ 'a' }}", /is not understood/],
    ["{{ index .Values.global.list 5 }}", /index 5 is outside of a list of 2/],
    ["{{ .a", /does not end/],
    ["{{ fail `give it a name` }}", /line 1: give it a name/],
    ['{{ template "no" . }}', /template "no" is not defined/],
    ["{{ printf `%z` 1 }}", /printf does not know %z/],
  ];
  for (const [template, message] of wrong) it(`refuses ${template}`, () => expect(() => run(template)).toThrow(message));

  it("is bounded in steps, output, calls and nesting, so that a hostile template ends", () => {
    const loop = "{{ range 1000 }}".repeat(3);
    expect(() => run(`${loop}x${"{{ end }}".repeat(3)}`)).toThrow(/more than \d+ (steps|characters)/);
    expect(() => run('{{ define "t" }}{{ template "t" . }}{{ end }}{{ template "t" . }}')).toThrow(/more than 40 levels/);
    expect(() => run(`{{ ${"(".repeat(100)}1${")".repeat(100)} }}`)).toThrow(/more than 50 levels/);
    expect(() => run(`${"{{ if 1 }}".repeat(100)}${"{{ end }}".repeat(100)}`)).toThrow(/more than 50 levels/);
    const doubling = `{{ $x := "ab" }}${"{{ $x = print $x $x }}".repeat(40)}`;
    expect(() => run(doubling)).toThrow(/more than \d+ characters/);
  });
});
