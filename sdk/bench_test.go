package sdk_test

import (
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	pluginv1 "github.com/noria-dev/noria/sdk/proto/noria/plugin/v1"
	providerv1 "github.com/noria-dev/noria/sdk/proto/noria/provider/v1"
)

// BenchmarkStartToReady is from the start of the process to the answer of Init.
func BenchmarkStartToReady(b *testing.B) {
	for b.Loop() {
		d := startAdapter(b, "plain")
		if _, err := d.plugin.Init(b.Context(), &pluginv1.InitRequest{}); err != nil {
			b.Fatal(err)
		}
		d.client.Kill()
	}
}

// BenchmarkClassify is one call after another over the real connection; it also tells what the process holds in memory.
func BenchmarkClassify(b *testing.B) {
	d := startAdapter(b, "plain")
	d.configure(b, 1, goodProvider, account("a", `{}`))
	request := &providerv1.ClassifyRequest{Account: "a", Status: 429,
		Evidence: &providerv1.ClassifyRequest_Body{Body: []byte(strings.Repeat("x", 4096))}}
	var took []time.Duration
	for b.Loop() {
		begin := time.Now()
		if _, err := d.provider.Classify(b.Context(), request); err != nil {
			b.Fatal(err)
		}
		took = append(took, time.Since(begin))
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
	if kib, ok := residentKiB(d.command.Process.Pid); ok {
		b.ReportMetric(kib/1024, "MiB-resident")
	}
}

// residentKiB reads what Linux tells of a process.
func residentKiB(pid int) (float64, bool) {
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/status")
	if err != nil {
		return 0, false
	}
	_, after, found := strings.Cut(string(text), "VmRSS:")
	value, err := strconv.ParseFloat(strings.Fields(after + " x")[0], 64)
	return value, found && err == nil
}
