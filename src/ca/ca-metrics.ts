/** What the CA counts; the names in brackets are Istio's. */
export interface CaMetrics {
  /** A request came (citadel_server_csr_count). */
  request(): void;
  /** Its sender did not prove who it is (citadel_server_authentication_failure_count). */
  unauthenticated(): void;
  /** Its sender is known, but is no workload (citadel_server_id_extraction_err_count). */
  noIdentity(): void;
  /** It cannot be read (citadel_server_csr_parsing_err_count). */
  malformed(): void;
  /** citadel_server_csr_sign_err_count. */
  signFailed(): void;
  /** citadel_server_success_cert_issuance_count. */
  issued(): void;
}
