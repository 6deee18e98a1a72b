/** Values by id, one object each, for as long as somebody else holds it. */
export class Interned<T extends object> {
  readonly #values = new Map<string, WeakRef<T>>();
  #prunedAt = 64;

  /** The value of that id, made where nobody holds one. */
  of(id: string, make: () => T): T {
    const known = this.#values.get(id)?.deref();
    if (known !== undefined) return known;
    if (this.#values.size > this.#prunedAt) this.#prune();
    const value = make();
    this.#values.set(id, new WeakRef(value));
    return value;
  }

  #prune(): void {
    for (const [id, value] of this.#values) if (value.deref() === undefined) this.#values.delete(id);
    this.#prunedAt = Math.max(64, this.#values.size * 2);
  }
}
