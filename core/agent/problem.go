package agent

import (
	"errors"
	"fmt"

	"github.com/noria-dev/noria/core/config"
	"github.com/noria-dev/noria/core/plugin"
)

// unusablePlugin says at the line that names a plugin's executable why it cannot be used and what to do.
func unusablePlugin(file *config.File, spec plugin.Spec, err error) config.Diagnostic {
	d := config.Diagnostic{
		Severity: config.SeverityError, Summary: fmt.Sprintf("Plugin %q cannot be used", spec.Name), Detail: err.Error() + ".",
	}
	attribute := "path"
	var failure *plugin.Failure
	if errors.As(err, &failure) {
		d.Detail = fmt.Sprintf("%s: %s. %s", spec.Path, failure, PluginRemedy(spec.Name, string(failure.Reason)))
		if failure.Reason == plugin.ReasonDigestMismatch {
			attribute = "sha256"
		}
	}
	return file.AtPlugin(spec.Name, spec.Provider, attribute, d)
}

// PluginRemedy says in a sentence what to do about a plugin that is not ready for a reason of [plugin.Reason].
func PluginRemedy(name, reason string) string {
	switch plugin.Reason(reason) {
	case plugin.ReasonNotFound:
		return fmt.Sprintf("Set path in plugin %q to an executable that this user may read; bundled adapters lie beside noria itself.", name)
	case plugin.ReasonUntrustedFile:
		return "A plugin is an executable file (chmod +x) that belongs to you or root, in directories that do, and that nobody else may change (chmod go-w); it is named without links."
	case plugin.ReasonUnpinned, plugin.ReasonDigestMismatch:
		return fmt.Sprintf("\"noria plugins pin %s\" prints the line for plugin %q.", name, name)
	case plugin.ReasonCopyFailed:
		return "See that there is room in the state directory, and that this user may write there."
	case plugin.ReasonDescribe, plugin.ReasonProtocol, plugin.ReasonHandshake:
		return "It was run with the argument \"describe\" and is perhaps no adapter for Noria, or one that needs something to run: \"noria plugins test PATH\" tells more."
	case plugin.ReasonSigner:
		return fmt.Sprintf("Use a version of plugin %q that leases credentials, or a version of Noria that signs requests.", name)
	case plugin.ReasonIdentity:
		return "Name the plugin's own provider, or set path to the adapter of this one."
	case plugin.ReasonExecFailed:
		return "See that it was built for this machine, and that what it needs to run is installed."
	case plugin.ReasonConfig, plugin.ReasonConfigure:
		return "\"noria config validate\" shows the line; fix it, then run \"noria reload\"."
	}
	return fmt.Sprintf("\"noria plugins info %s\" shows its last output, \"noria plugins restart %s\" tries it again.", name, name)
}
