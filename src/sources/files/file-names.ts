const CONFIG_EXTENSION = /\.(?:ya?ml|json)$/i;

/**
 * Names nobody means as configuration: hidden ones (`.git`, `.foo.yaml.swp`, `.#foo.yaml`, and the `..data` directories of a mounted
 * ConfigMap, whose files are reached through links) and what editors leave behind while they save.
 */
export const isIgnoredName = (name: string): boolean =>
  name.startsWith(".") || name.endsWith("~") || name.endsWith("#") || name.endsWith(".tmp") || name.includes("___jb_");

/** Whether a file of this name holds configuration. */
export const isConfigName = (name: string): boolean => !isIgnoredName(name) && CONFIG_EXTENSION.test(name);

/**
 * The namespace of objects that carry none: the first directory below the configuration directory, however deep the file lies.
 * Files directly in the configuration directory have none.
 */
export function namespaceOfPath(path: string): string | undefined {
  const slash = path.indexOf("/");
  return slash <= 0 ? undefined : path.slice(0, slash);
}
