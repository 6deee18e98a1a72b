/** Statuses Envoy can answer with by itself. */
export const httpStatusFault = (status: number): string | undefined =>
  status >= 200 && status <= 599 ? undefined : `${status} is not an HTTP status from 200 to 599`;
