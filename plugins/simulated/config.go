package simulated

import (
	"time"

	"github.com/noria-dev/noria/sdk"
)

// providerBlock is the provider block of noria.hcl.
type providerBlock struct {
	Speed   float64       `hcl:"speed" default:"60" doc:"how many times faster than life the windows run"`
	Seed    int           `hcl:"seed" default:"1" doc:"what a request costs follows from it"`
	Cost    float64       `hcl:"cost" default:"1.5" doc:"percent of the five-hour window that a request costs on average"`
	Latency time.Duration `hcl:"latency" default:"400ms" doc:"how long an answer takes"`
}

// accountBlock is an account block of noria.hcl.
type accountBlock struct {
	FiveHourUsed float64       `hcl:"five_hour_used" doc:"used percent at the start; 0: the window has not started"`
	FiveHourLeft time.Duration `hcl:"five_hour_left" doc:"time to the reset at the start; 0: the whole window"`
	WeeklyUsed   float64       `hcl:"weekly_used" doc:"used percent at the start; 0: the window has not started"`
	WeeklyLeft   time.Duration `hcl:"weekly_left" doc:"time to the reset at the start; 0: the whole window"`
}

const (
	fiveHours = 5 * time.Hour
	week      = 7 * 24 * time.Hour
)

// length of a window at the block's speed.
func (p providerBlock) length(real time.Duration) time.Duration {
	return time.Duration(float64(real) / p.Speed).Round(time.Second)
}

func (p providerBlock) windows() []sdk.WindowDeclaration {
	return []sdk.WindowDeclaration{
		{ID: windowFiveHour, Kind: sdk.WindowRolling, Length: p.length(fiveHours), Label: "5h"},
		{ID: windowWeekly, Kind: sdk.WindowWeekly, Length: p.length(week), Label: "weekly"},
	}
}

func (p providerBlock) problems() (found []sdk.Diagnostic) {
	wrong := func(attribute, detail string) {
		found = append(found, sdk.Diagnostic{
			Severity: sdk.SeverityError, Summary: attribute + " is out of range", Detail: detail, Attribute: attribute,
		})
	}
	if !(p.Speed >= 1 && p.Speed <= 3600) {
		wrong("speed", "It must be between 1 (as in life) and 3600 (five hours in five seconds).")
	}
	if !(p.Cost > 0 && p.Cost <= 100) {
		wrong("cost", "It must be above 0 and at most 100.")
	}
	if p.Latency < 0 || p.Latency > time.Minute {
		wrong("latency", "It must be between 0s and 1m.")
	}
	return found
}

func (b accountBlock) problems() (found []sdk.Diagnostic) {
	wrong := func(attribute, detail string) {
		found = append(found, sdk.Diagnostic{
			Severity: sdk.SeverityError, Summary: attribute + " is out of range", Detail: detail, Attribute: attribute,
		})
	}
	for attribute, used := range map[string]float64{"five_hour_used": b.FiveHourUsed, "weekly_used": b.WeeklyUsed} {
		if !(used >= 0 && used <= 100) {
			wrong(attribute, "It must be between 0 and 100.")
		}
	}
	for attribute, left := range map[string]time.Duration{"five_hour_left": b.FiveHourLeft, "weekly_left": b.WeeklyLeft} {
		if left < 0 {
			wrong(attribute, "It must not be negative.")
		}
	}
	return found
}
