package journal

// batch is what the writer takes in one go.
type batch struct {
	segment *segment // receives data; nil when there is no file to write to
	data    []byte
	lines   int
	last    uint64   // the last sequence given out
	latches uint64   // Journal.latches when the batch was taken
	dropped *segment // was given up
	next    *segment // has taken over from segment
	end     bool     // the journal is being closed
}

// write is the goroutine that writes. It ends after Close.
func (j *Journal) write() {
	defer close(j.done)
	for {
		<-j.wake
		b := j.take()
		if b.dropped != nil {
			b.dropped.file.Close() // its bytes count for nothing any more, nor does this error
		}
		if b.end && b.segment != nil {
			b.data = appendLine(b.data, b.segment.check, line{sequence: b.last, kind: endLine, body: []byte("{}")})
		}
		if b.segment != nil && len(b.data) > 0 {
			j.commit(b)
		}
		if b.next != nil {
			j.handOver(b)
		}
		if b.end {
			j.finish()
			return
		}
	}
}

// take takes what is buffered. An offered segment takes over at this moment: what is appended from now on goes there.
func (j *Journal) take() batch {
	j.mu.Lock()
	defer j.mu.Unlock()
	b := batch{end: j.phase == closing, last: j.sequence, latches: j.latches}
	if j.drop {
		b.dropped, j.segment, j.drop = j.segment, nil, false
	}
	b.segment, b.data, b.lines = j.segment, j.pending, j.lines
	j.pending, j.lines = nil, 0
	if j.offered != nil && !b.end {
		b.next, j.segment, j.offered = j.offered, j.offered, nil
		b.next.after, b.next.appended = j.sequence, j.appended
	}
	return b
}

// commit writes the batch and syncs it once for all who wait.
func (j *Journal) commit(b batch) {
	start := j.clock.Now()
	_, err := b.segment.file.Write(b.data)
	if err == nil {
		err = b.segment.file.Sync()
	}
	if err == nil {
		err = b.segment.file.Linked()
	}
	j.onCommit(max(j.clock.Now().Sub(start), 0)) // the clock may go back

	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		j.failed(b, err)
		return
	}
	if j.latches != b.latches { // given up on while the sync went on
		return
	}
	j.stats.Commits++
	b.segment.bytes += int64(len(b.data))
	b.segment.entries += b.lines
	j.synced = b.last
	if j.settled {
		j.durable.Store(max(j.durable.Load(), b.last)) // a snapshot may have come further
		j.broadcast()
	}
	if b.next == nil && !b.end {
		j.checkSize(b.segment)
	}
}

// failed latches; a segment that has taken over meanwhile is not to blame. j.mu is held.
func (j *Journal) failed(b batch, err error) {
	if b.next == nil {
		j.latchLocked(err)
		return
	}
	j.degrade(err)
}

// checkSize asks for a snapshot when the journal has grown enough, and gives the journal up when none comes. j.mu is held.
func (j *Journal) checkSize(s *segment) {
	if s.bytes >= j.limits.JournalBytes {
		j.latchLocked(errFull)
		return
	}
	if j.grown(s) {
		j.want()
	}
}

// handOver ends the segment before and tells who offered the next one that it has taken over.
func (j *Journal) handOver(b batch) {
	if b.segment != nil {
		b.segment.file.Close() // all of it is synced, or given up
	}
	j.mu.Lock()
	b.next.latches = j.latches
	j.mu.Unlock()
	close(b.next.taken)
}

// finish marks the journal closed.
func (j *Journal) finish() {
	j.mu.Lock()
	last := j.segment
	j.segment, j.phase = nil, closed
	j.broadcast()
	j.mu.Unlock()
	if last != nil {
		last.file.Close() // all of it is synced, or given up
	}
}
