listen {
  adress = "127.0.0.1:4517"
}

provider "claude" {
  upstrem = "https://upstream.example"

  account "work" {
    hom    = "~/.claude-work"
    enable = true
  }
}
