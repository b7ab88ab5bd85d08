package journal

import "github.com/hashicorp/go-hclog"

// note is a line for the log about what happened while mu was held. A goroutine of its own writes it there: a log that blocks,
// because nobody reads it, must not hold up who appends, nor the writer.
type note struct {
	level hclog.Level
	text  string
	args  []any
}

// maxNotes bounds the notes that wait for a log that blocks. Further ones are dropped; findings say what matters.
const maxNotes = 16

// note returns at once.
func (j *Journal) note(level hclog.Level, text string, args ...any) {
	select {
	case j.notes <- note{level, text, args}:
	default:
	}
}

// logNotes is the goroutine that logs. It ends after the writer.
func (j *Journal) logNotes() {
	defer close(j.logged)
	for {
		select {
		case n := <-j.notes:
			j.logger.Log(n.level, n.text, n.args...)
		case <-j.done:
			j.logRest()
			return
		}
	}
}

func (j *Journal) logRest() {
	for {
		select {
		case n := <-j.notes:
			j.logger.Log(n.level, n.text, n.args...)
		default:
			return
		}
	}
}
