package agent

import "testing"

func TestAnAdapterInADebuggerIsAttachedToUnderItsOwnNameOnly(t *testing.T) {
	const value = `{"name":"acme","protocol":"grpc","protocol_version":1,"pid":42,"network":"unix","address":"/run/x/adapter"}`
	tests := []struct{ name, plugin, line, want string }{
		{"the value as a shell sets it", "acme", value, value},
		{"the whole line", "acme", "NORIA_REATTACH='" + value + "'\n", "NORIA_REATTACH='" + value + "'\n"},
		{"another plugin", "claude", value, ""},
		{"none", "acme", "", ""},
		{"no JSON", "acme", "yes", ""},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			if got := runningAdapter(test.plugin, test.line); got != test.want {
				t.Errorf("runningAdapter(%q) = %q", test.line, got)
			}
		})
	}
}
