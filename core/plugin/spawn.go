package plugin

import (
	"errors"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// spawner starts processes from one operating system thread. On Linux a child can be told to die with the thread that
// made it, and Go's threads come and go: this one stays until the spawner is closed, after the last child ended.
type spawner struct {
	jobs chan spawnJob
	done chan struct{}
}

type spawnJob struct {
	cmd    *exec.Cmd
	result chan error
}

func newSpawner() *spawner {
	s := &spawner{jobs: make(chan spawnJob), done: make(chan struct{})}
	go func() {
		defer close(s.done)
		// Never unlocked: the thread ends with the goroutine.
		runtime.LockOSThread()
		for job := range s.jobs {
			job.result <- start(job.cmd)
		}
	}()
	return s
}

// start starts the command in a process group of its own.
func (s *spawner) start(cmd *exec.Cmd) error {
	cmd.SysProcAttr = childAttributes()
	job := spawnJob{cmd: cmd, result: make(chan error, 1)}
	s.jobs <- job
	return <-job.result
}

// close ends the thread. Children that are still there end with it.
func (s *spawner) close() {
	close(s.jobs)
	<-s.done
}

// start repeats while the file is busy: another thread that forks just then holds the fresh copy open for writing until
// it executes.
func start(cmd *exec.Cmd) error {
	const attempts, pause = 50, 10 * time.Millisecond
	for attempt := 1; ; attempt++ {
		err := cmd.Start()
		if attempt == attempts || !errors.Is(err, syscall.ETXTBSY) {
			return err
		}
		time.Sleep(pause)
	}
}
