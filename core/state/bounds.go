package state

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/noria-dev/noria/core/quota"
)

// Bounds of what may become a row.
const (
	maxIdentity = 256
	maxName     = 128
	maxCode     = 64
	maxMoves    = 5
	maxPatterns = 32
)

// SessionKey is provider/identity. An identity that is longer than 256 bytes, holds anything but printable characters, or
// looks like a credential is hashed; an empty one gives an empty key.
func SessionKey(provider, identity string) string {
	if identity == "" {
		return ""
	}
	if !plainIdentity(identity) {
		sum := sha256.Sum256([]byte(identity))
		identity = "sha256:" + hex.EncodeToString(sum[:])
	}
	return provider + "/" + identity
}

func plainIdentity(identity string) bool {
	return len(identity) <= maxIdentity && printable(identity) && !secretive(identity)
}

// credential is what the keys of providers and their tokens look like.
var credential = regexp.MustCompile(`\b(?:sk-|eyJ)[A-Za-z0-9_.-]{16,}`) // read only

// secretive reports whether a text holds what looks like a credential. None of ours is ever a name, so it got there by a
// mistake, and is not to be kept.
func secretive(s string) bool {
	return (strings.Contains(s, "sk-") || strings.Contains(s, "eyJ")) && credential.MatchString(s)
}

// SessionHash is what logs show of a session: a short hash of its key.
func SessionHash(key string) string {
	if key == "" {
		return ""
	}
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:6])
}

func providerOf(session string) string {
	provider, _, _ := strings.Cut(session, "/")
	return provider
}

// boundedSession brings a session key that came from elsewhere into the form that SessionKey makes.
func boundedSession(provider, key string) string {
	if key == "" {
		return ""
	}
	identity, ok := strings.CutPrefix(key, provider)
	if ok && len(identity) > 1 && identity[0] == '/' {
		identity = identity[1:]
		if plainIdentity(identity) {
			return key
		}
	} else {
		identity = key
	}
	return SessionKey(provider, identity)
}

// boundedModel hashes a model name that is too long or strange to be a key.
func boundedModel(model string) string {
	if len(model) <= maxName && printable(model) {
		return model
	}
	sum := sha256.Sum256([]byte(model))
	return "sha256:" + hex.EncodeToString(sum[:16])
}

// printable refuses the replacement character as well: it stands where something was lost.
func printable(s string) bool {
	for _, r := range s {
		if ' ' <= r && r <= '~' {
			continue
		}
		if r == utf8.RuneError || !unicode.IsPrint(r) {
			return false
		}
	}
	return true
}

// ErrInvalid is wrapped by errors about values that may not become rows.
var ErrInvalid = errors.New("invalid value")

func invalid(what string) error { return fmt.Errorf("check %s: %w", what, ErrInvalid) }

func checkText(what, s string, limit int) error {
	if len(s) > limit || !printable(s) {
		return invalid(what)
	}
	return nil
}

func checkAccount(id quota.AccountID) error {
	if id.Provider == "" || id.Name == "" || strings.Contains(id.Provider, "/") {
		return invalid("account")
	}
	if secretive(id.Name) {
		return invalid("account, whose name looks like a credential")
	}
	return cmp.Or(checkText("provider", id.Provider, maxName), checkText("account", id.Name, maxName))
}

// checkTime: a time is unknown, or within the years that can be written and read back.
func checkTime(what string, t time.Time) error {
	if !t.IsZero() && (t.Year() < 1970 || t.Year() > 9999) {
		return invalid(what)
	}
	return nil
}

// checkFinite comes before any clamping: clamping makes no number of what is none.
func checkFinite(what string, numbers ...float64) error {
	for _, n := range numbers {
		if math.IsNaN(n) || math.IsInf(n, 0) || math.Abs(n) > 1e15 {
			return invalid(what)
		}
	}
	return nil
}

func (r *accountRow) check() error {
	return cmp.Or(checkAccount(r.Account), checkText("generation", r.Generation, maxIdentity))
}

func (r *bindingRow) check() error {
	provider, identity, ok := strings.Cut(r.Session, "/")
	if !ok || provider == "" || identity == "" {
		return invalid("session")
	}
	switch r.BoundBy {
	case BoundInitially, BoundByFailover, BoundByOperator:
	default:
		return invalid("bound by")
	}
	if len(r.Moves) > maxMoves {
		return invalid("moves")
	}
	for i := range r.Moves {
		m := &r.Moves[i]
		if err := cmp.Or(checkText("move", m.From+m.To+string(m.By)+m.Cause, 2*maxName+2*maxCode), checkTime("move", m.At)); err != nil {
			return err
		}
	}
	return cmp.Or(
		checkAccount(r.account()), checkText("session", identity, maxIdentity), checkText("model", r.Model, maxName),
		checkText("cause", r.Cause, maxCode), checkTime("bound at", r.BoundAt), checkTime("last used", r.LastUsed),
		checkFinite("cadence", r.Cadence))
}

func (r *blockersRow) check() error {
	if len(r.Blockers) > quota.MaxBlockers {
		return invalid("blockers")
	}
	for i := range r.Blockers {
		b := &r.Blockers[i]
		switch b.Cause {
		case quota.CauseQuota, quota.CauseAuth, quota.CauseNotEntitled:
		default:
			return invalid("cause")
		}
		err := cmp.Or(
			checkText("model", b.Model, maxName), checkText("window", b.Window, maxName), checkText("reason", b.Reason, maxCode),
			checkTime("clears at", b.ClearsAt), checkTime("no later than", b.NoLaterThan), checkTime("observed at", b.ObservedAt),
			checkTime("attempt at", b.AttemptAt), checkFinite("shown percent", b.ShownPercent))
		if err != nil {
			return err
		}
	}
	return checkAccount(r.Account)
}

func (r *windowRow) check() error {
	return cmp.Or(checkAccount(r.Account), checkWindow(&r.Window))
}

func checkWindow(w *quota.Window) error {
	if err := cmp.Or(checkDeclaration(w.Declaration), checkCounts(w.Stamp), checkCounts(w.Baseline.Completed)); err != nil {
		return err
	}
	switch w.Evidence {
	case quota.EvidenceNone, quota.EvidenceObserved, quota.EvidenceAwaiting, quota.EvidenceRolled:
	default:
		return invalid("evidence")
	}
	for i := range w.Learned {
		l := &w.Learned[i]
		if err := cmp.Or(checkText("model", l.Model, maxName), checkFinite("learned sums", l.Percent, l.Requests)); err != nil {
			return err
		}
		if l.Percent < 0 || l.Requests < 0 {
			return invalid("learned sums")
		}
	}
	return cmp.Or(
		checkText("state", string(w.Shown.State), maxCode), checkText("source", string(w.Shown.Source), maxCode),
		checkFinite("percent", w.Shown.UsedPercent, w.EstimatePercent, w.Baseline.UsedPercent),
		checkTime("taken at", w.TakenAt), checkTime("received at", w.ReceivedAt),
		checkTime("resets at", w.ResetsAt), checkTime("predicted at", w.PredictedAt))
}

func checkDeclaration(d quota.Declaration) error {
	if d.ID == "" || d.Length < 0 || d.Length > 400*24*time.Hour || len(d.Models) > maxPatterns {
		return invalid("window")
	}
	for _, m := range d.Models {
		if err := checkText("window models", m, maxName); err != nil {
			return err
		}
	}
	return cmp.Or(checkText("window", d.ID, maxName), checkText("kind", string(d.Kind), maxCode), checkText("label", d.Label, maxName))
}

func checkCounts(counts quota.Counts) error {
	for i := range counts {
		if err := checkText("model", counts[i].Model, maxName); err != nil {
			return err
		}
	}
	return nil
}

func (r *learnedRow) check() error {
	if r.Account != (quota.AccountID{}) {
		if err := checkAccount(r.Account); err != nil {
			return err
		}
	}
	return cmp.Or(checkCounts(r.Completed), checkFinite("demand", r.Demand.Events, r.Demand.Hours, r.Demand.Ended))
}
