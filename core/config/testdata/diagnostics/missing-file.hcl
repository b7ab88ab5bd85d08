listen {
  tls_cert = "none/cert.pem"
  tls_key  = "none/key.pem"
}

provider "claude" {
  account "work" {
    home = file("none.txt")
  }
  account "ci" {
    credential { file = "none/token" }
  }
}
