package sdk_test

import (
	"encoding/hex"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/proto"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// recorded reads a message as a later minor of the protocol writes it: with fields 900 and 901 at every level, and values
// of enumerations that do not exist yet. testdata/wire holds the bytes.
func recorded[M proto.Message](t *testing.T, name string, message M) M {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("testdata", "wire", name+".hex"))
	if err != nil {
		t.Fatal(err)
	}
	data, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
	if err != nil {
		t.Fatal(err)
	}
	if err := proto.Unmarshal(data, message); err != nil {
		t.Fatal(err)
	}
	if len(message.ProtoReflect().GetUnknown()) == 0 {
		t.Fatalf("%s has no unknown fields", name)
	}
	return message
}

func TestAnAdapterServesADaemonOfALaterMinor(t *testing.T) {
	d := startAdapter(t, "plain")
	// What was unknown when it was read is sent on as it came.
	configured, err := d.plugin.Configure(t.Context(), recorded(t, "configure_request", &pluginv1.ConfigureRequest{}))
	if err != nil || len(configured.GetDiagnostics()) > 0 {
		t.Fatalf("configure: %v, %v", configured, err)
	}
	lease, err := d.provider.Lease(t.Context(), &providerv1.LeaseRequest{Account: "one"})
	if err != nil || lease.GetLease().GetSet()[0].GetValue() != "Bearer t" {
		t.Errorf("lease: %v, %v", lease, err)
	}
	verdict, err := d.provider.Classify(t.Context(), recorded(t, "classify_request", &providerv1.ClassifyRequest{}))
	if err != nil || verdict.GetReason() != "error" {
		t.Errorf("classify: %v, %v", verdict, err)
	}
}

func TestAnswersOfALaterMinorKeepWhatIsKnown(t *testing.T) {
	description := recorded(t, "describe_response", &pluginv1.DescribeResponse{})
	if description.GetName() != "later" || len(description.GetServices()) != 3 || description.GetConfigSchema().GetAttributes()[0].GetName() != "a" {
		t.Errorf("description %v", description)
	}
	if known := description.GetConfigSchema().GetAttributes()[0].GetType().Descriptor().Values().ByNumber(99); known != nil {
		t.Error("the recorded type is known by now; record another")
	}
	lease := recorded(t, "lease_response", &providerv1.LeaseResponse{})
	if lease.GetLease() != nil || lease.GetRefusal() != nil {
		t.Errorf("a third kind of answer is read as %v", lease)
	}
}
