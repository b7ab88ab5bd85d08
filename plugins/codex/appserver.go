package codex

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os/exec"
	"regexp"
	"time"

	"github.com/noria-dev/noria/sdk"
)

// clientPatience bounds a conversation with the official client.
const clientPatience = 10 * time.Second

// diverting are variables that make the client use something other than the login in its home.
var diverting = []string{
	"OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENAI_FEDERATION_RULE_ID", "CODEX_API_KEY", "CODEX_ACCESS_TOKEN",
	"CODEX_AUTHAPI_BASE_URL", "CODEX_APP_SERVER_CHATGPT_BASE_URL", "CODEX_APP_SERVER_LOGIN_ISSUER",
	"CODEX_REFRESH_TOKEN_URL_OVERRIDE", "CODEX_REVOKE_TOKEN_URL_OVERRIDE", "CODEX_OSS_BASE_URL", "CODEX_OSS_PORT",
}

// appServer is a conversation with the official client's app-server.
type appServer struct {
	rpc *sdk.RPC
	// userAgent names the client's version.
	userAgent string
}

// appServerCommand starts the client for one account. What config.toml of its home might divert is set explicitly. A
// backend on loopback stands for all of the vendor, so the client renews its login there as well.
func appServerCommand(s settings) sdk.Command {
	command := sdk.Command{
		Argv: []string{
			s.provider.Client,
			"-c", `model_provider="openai"`,
			"-c", "chatgpt_base_url=" + quote(s.provider.Backend),
			"-c", "openai_base_url=" + quote(s.provider.Upstream),
			"app-server", "--stdio",
		},
		Env:   map[string]string{"CODEX_HOME": string(s.account.Home), "RUST_LOG": "off"},
		Unset: diverting,
	}
	if backend, err := url.Parse(s.provider.Backend); err == nil && backend.Scheme == "http" {
		command.Env["CODEX_REFRESH_TOKEN_URL_OVERRIDE"] = "http://" + backend.Host + "/oauth/token"
	}
	return command
}

// ask has one conversation in the home's turn and returns what it was about. When ctx ends first, its error is returned
// and the conversation goes on to its own end.
func ask[T any](ctx context.Context, a *Adapter, s settings, talk func(*appServer) (T, error)) (T, error) {
	var none, told T
	var failed error
	if s.account.Home == "" {
		return none, errNoHome
	}
	if err := a.clients.Do(ctx, string(s.account.Home), func(ctx context.Context) {
		failed = converse(ctx, s, func(server *appServer) (err error) {
			told, err = talk(server)
			return err
		})
	}); err != nil {
		return none, err
	}
	return told, failed
}

var errNoHome = errors.New("account has no home that the official client could be asked about")

// converse starts the client, introduces itself and talks. The caller has the home's turn.
func converse(ctx context.Context, s settings, talk func(*appServer) error) error {
	rpc, err := sdk.StartRPC(ctx, appServerCommand(s), clientPatience)
	if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
		return sdk.Refuse(sdk.RefusalTemporary, fmt.Sprintf(
			"the official client %s is not found in the daemon's PATH: set client to its path in the provider block", s.provider.Client))
	}
	if err != nil {
		return err
	}
	defer rpc.Close()
	server := &appServer{rpc: rpc}
	if err := server.introduce(); err != nil {
		return err
	}
	return talk(server)
}

func (s *appServer) introduce() error {
	params := map[string]any{"clientInfo": map[string]string{"name": "noria", "title": "Noria", "version": version}}
	var result struct {
		UserAgent string `json:"userAgent"`
	}
	if err := s.rpc.Call("initialize", params, &result); err != nil {
		return err
	}
	s.userAgent = result.UserAgent
	return s.rpc.Notify("initialized", nil)
}

// accountInfo is what the client says of its login, without the user's name.
type accountInfo struct {
	// kind is chatgpt or apiKey; empty: signed out, or a login that cannot be renewed any more.
	kind string
}

func (s *appServer) account(refresh bool) (accountInfo, error) {
	var result struct {
		Account *struct {
			Type string `json:"type"`
		} `json:"account"`
	}
	if err := s.rpc.Call("account/read", map[string]bool{"refreshToken": refresh}, &result); err != nil {
		return accountInfo{}, err
	}
	if result.Account == nil {
		return accountInfo{}, nil
	}
	return accountInfo{kind: result.Account.Type}, nil
}

var versionInAgent = regexp.MustCompile(`^noria/([0-9][0-9A-Za-z.+-]{0,31}) `)

func (s *appServer) version() string {
	if found := versionInAgent.FindStringSubmatch(s.userAgent); found != nil {
		return found[1]
	}
	return ""
}

// upstreamStatus finds the status of the upstream's answer in the text of a refusal.
var upstreamStatus = regexp.MustCompile(` failed: ([45]\d\d) `)

// withClass adds to a refusal what its text says of the upstream, without the text.
func withClass(err error) error {
	var refused *sdk.RPCError
	if errors.As(err, &refused) {
		if status := refused.Find(upstreamStatus); status != "" {
			return fmt.Errorf("%w: upstream status %s", err, status)
		}
	}
	return err
}
