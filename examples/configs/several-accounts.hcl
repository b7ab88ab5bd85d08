# Two logins of Claude Code, two of Codex. The one at work may not serve the largest model, and a pay-as-you-go key stands
# by, switched off.
provider "claude" {
  account "personal" {
    home = "~/.claude"
  }
  account "work" {
    home   = "~/.claude-work"
    models = ["claude-sonnet-*", "claude-haiku-*"]
  }
  account "key" {
    enabled = false
    api_key = true
    credential { command = ["pass", "show", "anthropic"] }
  }
}

provider "codex" {
  account "main" {
    home = "~/.codex"
  }
  account "second" {
    home    = "~/.codex-second"
    overage = "allow"
  }
}
