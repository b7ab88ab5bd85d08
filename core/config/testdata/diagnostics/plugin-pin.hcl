plugin "acme" {
  path = "plugins/noria-provider-acme"
}

plugin "other" {
  sha256      = "abc"
  environment = ["OTHER_REGION=eu"]
}

plugin "Third" {
  dev = true
}
