import assert from "node:assert/strict";
import { describe, it } from "vitest";
import { metricTagFormat } from "./metric-tag.ts";

describe("expressions as labels of metrics", () => {
  const good: readonly (readonly [expression: string, format: string])[] = [
    ["request.host", "%CEL(request.host)%"],
    ["string(destination.port)", "%CEL(destination.port)%"],
    ["string( request.headers['a'] )", "%CEL(request.headers['a'])%"],
    ["'a' in request.headers ? 'x y' : 'z'", "%CEL('a' in request.headers?'x y':'z')%"],
    ["request.path.startsWith('/v1') // old\n && request.size > 5", "%CEL(request.path.startsWith('/v1')&&request.size>5)%"],
    ["has(request.headers.foo)", "%CEL(has(request.headers.foo))%"],
    ["request.path.matches('^/a+$')", "%CEL(request.path.matches('^/a+$'))%"],
    ["request.path.matches(request.host)", "%CEL(request.path.matches(request.host))%"],
    ["xds.node.metadata['LABELS']", "%CEL(xds.node.metadata['LABELS'])%"],
  ];
  for (const [expression, format] of good) it(`${expression} is taken`, () => assert.deepEqual(metricTagFormat(expression), { format }));

  const bad: readonly (readonly [expression: string, fault: RegExp])[] = [
    ["request.", /not a CEL expression/],
    ["request.host.split(':')", /no function "split"/],
    ["string(destination.port) == string(source.port)", /no function "string"/],
    ["[1, 2].exists(x, x == 1)", /no function "exists"/],
    ["upstream_peer.labels['app'].value", /no attribute "upstream_peer"/],
    ["request.size % 2", /percent sign/],
    ["'100%'", /percent sign/],
    ["request.host + ':80'", /join texts/],
    ["request.path.matches('[')", /RE2/],
    ["request.path.size(request.host)", /no function "size"/],
  ];
  for (const [expression, fault] of bad)
    it(`${expression} is not`, () => {
      const made = metricTagFormat(expression);
      assert.match("fault" in made ? made.fault : "", fault);
    });
});
