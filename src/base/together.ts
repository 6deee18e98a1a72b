/**
 * The results of all, as `Promise.all` gives them; but where one fails, the others are waited for before that is thrown: nothing goes on behind the back of
 * who hears of it.
 */
export async function together<T extends readonly unknown[]>(all: T): Promise<{ -readonly [K in keyof T]: Awaited<T[K]> }> {
  await Promise.allSettled(all);
  return Promise.all(all);
}
