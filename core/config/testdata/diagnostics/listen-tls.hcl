listen {
  tls_cert = "listen-tls.hcl"
  tls_key  = "listen-tls.hcl"
}
