// The first module of a snapshot. Whoever asks for the machine, the time, the environment or chance while being loaded after it ends the build: the
// snapshot would keep the answer for every start, on every machine.

let loading = true;
const lifts = [];

/** All is loaded: from here on everything is as Node made it. */
export function liftGuard() {
  loading = false;
  for (const lift of lifts) lift();
}

function refuse(what) {
  if (loading) throw new Error(`a module asks for ${what} while it is loaded, and the snapshot would keep the answer for every start`);
}

/** Writes a value over another and leaves the rest of the property alone: objects of which more is changed, such as `Math`, are slow ever after. */
function replace(owner, name, value) {
  const before = owner[name];
  owner[name] = value;
  lifts.push(() => {
    owner[name] = before;
  });
}

/** Proxies, not functions of our own: what is bound while loading is bound to them, and must have all that the originals have. */
function refuseCalls(owner, title, names) {
  for (const name of names) {
    const apply = (target, self, args) => {
      refuse(`${title}.${name}`);
      return Reflect.apply(target, self, args);
    };
    replace(owner, name, new Proxy(owner[name], { apply }));
  }
}

function refuseReads(owner, name, what) {
  const get = (target, key) => {
    refuse(what(String(key)));
    return target[key];
  };
  const ownKeys = (target) => {
    refuse(what("names"));
    return Reflect.ownKeys(target);
  };
  replace(owner, name, new Proxy(owner[name], { get, has: get, ownKeys }));
}

const CALLS = {
  crypto: /^(?:random|generate|createECDH|createDiffie)/,
  os: /./,
  fs: /Sync$/,
  dns: /^(?:lookup|resolve|getServers)/,
  child_process: /^(?:exec|spawn|fork)/,
};
for (const [name, pattern] of Object.entries(CALLS)) {
  const module = process.getBuiltinModule(`node:${name}`);
  const calls = Object.keys(module).filter((key) => typeof module[key] === "function" && pattern.test(key));
  refuseCalls(module, name, calls);
}
refuseCalls(Math, "Math", ["random"]);
refuseCalls(process, "process", ["cwd", "hrtime", "uptime", "memoryUsage", "cpuUsage", "umask", "getuid", "geteuid"]);
refuseReads(process, "env", (name) => `the environment variable ${name}`);
refuseReads(process, "argv", () => "process.argv");
const pid = Object.getOwnPropertyDescriptor(process, "pid");
Object.defineProperty(process, "pid", {
  configurable: true,
  get() {
    refuse("process.pid");
    return pid.value;
  },
});
lifts.push(() => Object.defineProperty(process, "pid", pid));
const time = new Proxy(Date, {
  apply(target, self, args) {
    refuse("the time");
    return Reflect.apply(target, self, args);
  },
  construct(target, args, self) {
    if (args.length === 0) refuse("the time");
    return Reflect.construct(target, args, self);
  },
  get(target, name) {
    if (name === "now") refuse("the time");
    return target[name];
  },
});
replace(globalThis, "Date", time);
