/** A program of this machine that stands for an image. Containers see this machine's files, with a layer of their own over them. */
export interface Image {
  /** What runs unless the container has a `command`; the container's `args` follow. */
  readonly entrypoint: readonly string[];
  /** Runs after the entrypoint unless the container has `args` or a `command`. */
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string>>;
  readonly user?: number;
  readonly group?: number;
  readonly workingDir?: string;
  /** Files that the image has: path in the container → path on this machine. */
  readonly files?: Readonly<Record<string, string>>;
}

/** Which program stands for which image; by the whole name, or its last part without tag: `docker.io/istio/proxyv2:1.27.0` → `proxyv2`. */
export type Images = Readonly<Record<string, Image>>;

/** The program for an image; undefined where the test gave none. */
export function findImage(images: Images, name: string): Image | undefined {
  const last = name.slice(name.lastIndexOf("/") + 1).replace(/[:@].*/, "");
  return images[name] ?? images[last];
}
