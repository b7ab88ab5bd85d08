package journal

import (
	"fmt"
	"strings"

	"github.com/hashicorp/go-hclog"
)

// Level says how much a finding matters.
type Level string

const (
	// Note is worth knowing; nothing was lost that was acknowledged.
	Note Level = "note"
	// Warning says that something was lost or set aside, and the journal works.
	Warning Level = "warning"
	// Fault says that something does not work now.
	Fault Level = "fault"
)

// logged is the level at which a finding is logged.
func (l Level) logged() hclog.Level {
	switch l {
	case Note:
		return hclog.Info
	case Warning:
		return hclog.Warn
	}
	return hclog.Error
}

// Finding is one thing about the directory that a person may want to know. No finding holds bytes of an entry.
type Finding struct {
	Level Level
	// What happened, in words.
	What string
	// Where is the file it happened to.
	Where string
	// Do is what to do about it.
	Do string
}

func (f Finding) String() string {
	return fmt.Sprintf("%s: %s: %s (%s)", f.Level, f.Where, f.What, f.Do)
}

// maxFindings bounds what is remembered of a directory full of damage.
const maxFindings = 64

// findings collects findings up to a bound and counts the rest.
type findings struct {
	list []Finding
	more int
}

func (f *findings) add(level Level, where, do, what string, args ...any) {
	if len(f.list) == maxFindings {
		f.more++
		return
	}
	f.list = append(f.list, Finding{Level: level, What: fmt.Sprintf(what, args...), Where: where, Do: do})
}

func (f *findings) all() []Finding {
	list := append([]Finding(nil), f.list...)
	if f.more > 0 {
		list = append(list, Finding{Level: Warning, What: fmt.Sprintf("%d more findings", f.more), Where: "state directory", Do: "see the others first"})
	}
	return list
}

// maxReason bounds what is told of an error: the owner's may quote what it refused.
const maxReason = 200

func brief(err error) string {
	text := err.Error()
	return strings.ToValidUTF8(text[:min(len(text), maxReason)], "")
}

// counted is the number with the word for one or for more.
func counted(n int, one, more string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, more)
}
