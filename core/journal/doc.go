// Package journal keeps an append-only log and snapshots in one directory and recovers them. It knows bytes, not meaning:
// what an entry says is the business of whoever appended it.
//
// # Use
//
// [Open] locks the directory and looks at what is there. [Journal.Recover] restores the newest good snapshot, applies every entry
// after it in order, and lets the journal accept entries. [Journal.Append] buffers one entry and never waits for a disk;
// [Journal.Durable] waits until an entry would survive a power cut. All who wait share one sync, made by the one goroutine that
// writes. The owner answers [Journal.SnapshotWanted] with [Journal.Snapshot], which writes beside the appending, never in its way.
//
// # Write errors
//
// After a failed write or sync nothing says which bytes reached the disk, and a second sync of the same pages may report success
// for pages that were dropped. So the first error latches: the journal is degraded, [Journal.Durable] returns at once with a
// [DegradedError], appending goes on in memory, and a snapshot is wanted, after growing pauses, until a new generation in a new
// file with a full snapshot is durable. The same holds after a start: what was read back may never have left the page cache, so
// nothing counts as durable before the first snapshot of the new run does.
//
// # Files, format version 1
//
// The directory has mode 0700, files 0600, and both belong to the user. It holds
//
//	lock                    flock'ed by the one daemon that writes, with its process id
//	snapshot-<generation>   everything before the journal of the same generation
//	journal-<generation>    what happened since
//	*.tmp                   a snapshot that was not finished; removed at start
//	*.damaged               what recovery could not use, kept aside for a person to look at
//
// A generation is a decimal number without leading zeros. All checksums are CRC-32C (Castagnoli), written as eight lower-case
// hexadecimal digits. Every directory has a log id, sixteen hexadecimal digits chosen when its first file is made, so that blocks
// of another log are not taken for its own.
//
// A journal is a sequence of lines, each ending in a newline:
//
//	<crc> {"sequence":<n>,"type":"<type>","body":<json>}
//
// The object is written exactly so, without further white space; the body is one JSON object without newlines; a line has at
// most [MaxLineBytes] bytes. Sequences start at 1, grow by one and never start over. The types are
//
//	begin   the first line: sequence 0, body {"format":1,"log":"<log id>","generation":<n>}
//	entry   an entry; the body is what was appended
//	end     the last line after a clean stop: the last sequence, body {}
//
// The checksum of the first line covers the object alone. That of all other lines covers "<log id>/<generation>/" followed by the
// object, so a block of another generation or another log that shows up in the file fails its check.
//
// A snapshot is one header line followed by the body, a JSON document of the given length:
//
//	noria-snapshot <format> <log id> <generation> <sequence> <length> <crc of the body> <crc of this line so far>
//
// The header has 160 bytes: spaces stand in front of its last checksum as needed. The snapshot contains every entry up to its
// sequence. The last checksum covers the header line up to and including the space before it, so that a flipped bit in the
// format is damage and not a newer format.
//
// For all versions to come: the first line of a journal and the first two words and the last word of a snapshot's header keep
// their meaning, so that any release can tell a newer file from a damaged one. A newer format is refused with [NewerFormatError]
// and every byte is left as it is.
//
// # Order of a new generation
//
// Create journal N+1 and sync the directory; write snapshot-(N+1).tmp and sync it; rename it; sync the directory; remove all
// below the second newest snapshot. So the newest two snapshots and every journal that either needs are there at any moment.
//
// # Recovery
//
// The newest snapshot that checks and that the owner accepts, then the journals of its generation and later. Entries are
// ordered by sequence, never by time, and each is applied once. A torn tail is cut and kept aside. A bad line is skipped,
// counted and kept aside. A bad snapshot is kept aside and the one before it is used with its journals. A file that is not a
// regular file of ours with nobody else's access is never read. Each of these is a [Finding]; none of them stops a start.
package journal
