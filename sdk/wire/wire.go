// Package wire holds what the host and the SDK must agree on beside the protocol: handshake, names, limits. It is
// shared by both and promises nothing to authors.
package wire

import "github.com/hashicorp/go-plugin"

// Handshake is checked by both sides before anything else. The cookie is no secret: it only tells a user who starts an
// adapter by hand what it is.
var Handshake = plugin.HandshakeConfig{
	ProtocolVersion:  1,
	MagicCookieKey:   "NORIA_PLUGIN",
	MagicCookieValue: "2f1c2d7e-noria-provider-adapter",
}

// PluginName is the key of the one plugin that an executable serves.
const PluginName = "noria"

// MaxMessage bounds a message in either direction, in bytes. gRPC's own defaults differ by side.
const MaxMessage = 1 << 20

// Full names of the services.
const (
	ServicePlugin   = "noria.plugin.v1.Plugin"
	ServiceProvider = "noria.provider.v1.Provider"
	ServiceQuota    = "noria.provider.v1.Quota"
	ServiceAuth     = "noria.provider.v1.Auth"
	ServiceCatalog  = "noria.provider.v1.Catalog"
	ServiceLaunch   = "noria.provider.v1.Launch"
	ServiceSigner   = "noria.provider.v1.Signer"
)

// EnvStdinPipe is set to 1 by the host when the plugin's standard input is a pipe that ends with the host.
const EnvStdinPipe = "NORIA_PLUGIN_STDIN"

// EnvParent carries the host's process id, for the SDK's parent watch.
const EnvParent = "NORIA_PLUGIN_PARENT"
