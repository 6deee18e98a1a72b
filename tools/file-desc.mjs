// Part of the generated code (`src/gen/file-desc.js`): describes the files it was generated from. Most of what describes Envoy's API a process never looks
// at, and in memory it is by far the largest part of a program. So what describes a message beyond its name is made from the encoded file when somebody asks for it,
// in a process that starts from a snapshot; all others decode every file while they are loaded, since enums are made of what they say.

import { startupSnapshot } from "node:v8";
import { fileDesc as describe } from "@bufbuild/protobuf/codegenv2";

/** Files that have been decoded and that nobody has looked at. */
const untouched = new Set();

/** What every start reads configuration with, and what every proxy says of itself: to decode these again costs more than to have them in the snapshot. */
const NEEDED =
  /^(?:istio\/|envoy\/config\/core\/v3\/(?:address|base)$|envoy\/service\/discovery\/|envoy\/type\/v3\/semantic|xds\/core\/v3\/context)/;

// The snapshot is taken without the others.
if (startupSnapshot.isBuildingSnapshot())
  startupSnapshot.addSerializeCallback(() => {
    for (const file of untouched) {
      if (NEEDED.test(file.name)) file.seen();
      else file.forget();
    }
    untouched.clear();
  });

/**
 * Stands in for the library's function of this name. Each file is shown its direct imports only: the library walks the imports of imports again for every
 * file, which takes a good part of the time a program needs to start. A type can be named only where its file is imported, directly or publicly.
 */
export function fileDesc(encoded, imports = []) {
  const file = describe(encoded, imports.map(alone));
  file.dependencies = imports;
  // What extends other messages or is a service is known to others by more than its name, and there is little of it.
  return isKnownByNames(file) ? new LateFile(encoded, file) : file;
}

/** Stands in for the library's function of this name: the constants of an enum are made while modules are loaded, which is no reason to look at its file. */
export function tsEnum(desc) {
  const constants = {};
  for (const { localName, number } of (desc.unseen ?? desc).values) {
    constants[localName] = number;
    constants[number] = localName;
  }
  return constants;
}

const known = new WeakMap();

/** What the library needs of a file to resolve names in another. */
function alone(file) {
  const one = known.get(file) ?? namesOf(file);
  known.set(file, one);
  return one;
}

function namesOf(file) {
  const { kind, enums, messages, extensions, services } = file;
  const { name, publicDependency } = file instanceof LateFile ? file.names : file.proto;
  const dependencies = publicDependency.length > 0 ? file.dependencies : [];
  return { kind, proto: { name }, dependencies, enums, messages, extensions, services };
}

const isKnownByNames = ({ services, extensions, messages }) => services.length + extensions.length === 0 && messages.every(hasNoExtensions);
const hasNoExtensions = ({ nestedExtensions, nestedMessages }) => nestedExtensions.length === 0 && nestedMessages.every(hasNoExtensions);

class LateFile {
  kind = "file";
  extensions = [];
  services = [];

  constructor(encoded, decoded) {
    this.encoded = encoded;
    this.decoded = decoded;
    this.name = decoded.name;
    this.names = { name: decoded.proto.name, publicDependency: decoded.proto.publicDependency };
    this.dependencies = decoded.dependencies;
    this.types = new Map();
    this.enums = decoded.enums.map((one) => new LateEnum(one, this, undefined));
    this.messages = decoded.messages.map((one) => new LateMessage(one, this, undefined));
    untouched.add(this);
  }

  get proto() {
    return this.seen().proto;
  }

  get deprecated() {
    return this.seen().deprecated;
  }

  get edition() {
    return this.seen().edition;
  }

  toString() {
    return `file ${this.name}.proto`;
  }

  /** Somebody asks for what the library's descriptor of the file says: it is made where there is none, and what it says of types of the file points to ours. */
  seen() {
    if (this.decoded !== undefined && !untouched.has(this)) return this.decoded;
    this.decoded ??= describe(this.encoded, this.dependencies.map(alone));
    untouched.delete(this);
    for (const one of this.decoded.enums) this.adoptEnum(one);
    for (const one of this.decoded.messages) this.adoptMessage(one);
    return this.decoded;
  }

  forget() {
    this.decoded = undefined;
    for (const type of this.types.values()) if (type.kind === "enum") type.unseen = undefined;
  }

  adoptEnum(decoded) {
    const late = this.types.get(decoded.typeName);
    late.decoded = decoded;
    for (const value of decoded.values) value.parent = late;
  }

  adoptMessage(decoded) {
    const late = this.types.get(decoded.typeName);
    late.decoded = decoded;
    for (const member of decoded.oneofs) member.parent = late;
    for (const field of decoded.fields) {
      field.parent = late;
      if (field.message !== undefined) field.message = this.types.get(field.message.typeName) ?? field.message;
      if (field.enum !== undefined) field.enum = this.types.get(field.enum.typeName) ?? field.enum;
    }
    for (const one of decoded.nestedEnums) this.adoptEnum(one);
    for (const one of decoded.nestedMessages) this.adoptMessage(one);
  }
}

/** What a message and an enum have in common. */
class LateType {
  decoded = undefined;

  constructor({ name, typeName }, file, parent) {
    this.name = name;
    this.typeName = typeName;
    this.file = file;
    this.parent = parent;
    file.types.set(typeName, this);
  }

  get proto() {
    return this.seen().proto;
  }

  get deprecated() {
    return this.seen().deprecated;
  }

  toString() {
    return `${this.kind} ${this.typeName}`;
  }

  seen() {
    if (this.decoded === undefined) this.file.seen();
    return this.decoded;
  }
}

class LateMessage extends LateType {
  kind = "message";
  nestedExtensions = [];

  constructor(decoded, file, parent) {
    super(decoded, file, parent);
    this.nestedEnums = decoded.nestedEnums.map((one) => new LateEnum(one, file, this));
    this.nestedMessages = decoded.nestedMessages.map((one) => new LateMessage(one, file, this));
  }

  get fields() {
    return this.seen().fields;
  }

  get field() {
    return this.seen().field;
  }

  get oneofs() {
    return this.seen().oneofs;
  }

  get members() {
    return this.seen().members;
  }
}

class LateEnum extends LateType {
  kind = "enum";

  constructor(decoded, file, parent) {
    super(decoded, file, parent);
    this.unseen = decoded;
  }

  get open() {
    return this.seen().open;
  }

  get value() {
    return this.seen().value;
  }

  get values() {
    return this.seen().values;
  }

  get sharedPrefix() {
    return this.seen().sharedPrefix;
  }
}
