/*
 * libkcov: novelty maps, sets, dictionaries and probing for kernel fuzzers. Generated from the
 * sources of libkcov: run `API_UPDATE=1 cargo test -p kcov-capi --test interface` to update it.
 *
 * Signals are numbers that a map remembers: program counters as recorded, or numbers derived from
 * them. An array of signals or words may be a part of a live kcov buffer with 64-bit words; libkcov
 * loads each word atomically and once.
 *
 * Errors. A function that fails returns NULL or -1. kcov_last_failure() then gives the kind and
 * kcov_last_message() a sentence, for the calling thread.
 *
 * Arguments. Arrays are a pointer and a number of elements; NULL is allowed where the number is 0.
 * libkcov refuses arrays that are NULL, misaligned or longer than memory. Signals and words must be
 * aligned to 8 bytes, also where the compiler asks for less. The caller must pass arrays of at least
 * the given length, strings that end with a zero byte, handles that libkcov returned, and no handle
 * after it was freed. Functions with `out` return how many results there are, which may be more than
 * fit.
 *
 * Threads. Any thread may use a handle, but only one at a time: a second one gets
 * KCOV_FAILURE_BUSY. A session that is enabled belongs to its thread: others get
 * KCOV_FAILURE_WRONG_THREAD.
 *
 * A panic inside of libkcov becomes KCOV_FAILURE_DEFECT. Memory that cannot be allocated ends the
 * process.
 */


#ifndef LIBKCOV_H
#define LIBKCOV_H

#include <stddef.h>
#include <stdint.h>

// Leaves out comparisons of equal operands: the input already has the right value.
#define KCOV_SKIP_EQUAL 1

// Leaves out comparisons in which an operand is 0.
#define KCOV_SKIP_ZERO 2

// Leaves out comparisons of two variables.
#define KCOV_ONLY_CONST 4

// The mode that records program counters: one word per record.
#define KCOV_RECORD_PC 1

// The mode that records comparisons: four words per record.
#define KCOV_RECORD_CMP 2

// The usual number of signals outside the ranges that a map has room for.
#define KCOV_NOVELTY_FALLBACK 4096

// There was room for every record.
#define KCOV_RECORDS_COMPLETE 0

// The buffer is full, so records may be missing.
#define KCOV_RECORDS_TRUNCATED 1

// The target or another process wrote to the buffer. There are no records.
#define KCOV_RECORDS_CORRUPT 2

// What was wrong. Programs must expect kinds that later versions add.
enum kcov_failure {
  // Nothing has failed in this thread.
  KCOV_FAILURE_NONE = 0,
  // An argument is NULL, misaligned or out of limits.
  KCOV_FAILURE_INVALID_ARGUMENT = 1,
  // Another thread must make this call: the one that enabled.
  KCOV_FAILURE_WRONG_THREAD = 2,
  // Another thread is using the handle.
  KCOV_FAILURE_BUSY = 3,
  // A file or shared memory cannot be used.
  KCOV_FAILURE_FILE = 4,
  // The running kernel's text cannot be found.
  KCOV_FAILURE_KERNEL_TEXT = 5,
  // A defect of this library. The handle can only be freed.
  KCOV_FAILURE_DEFECT = 6,
  // An error of the device that this version has no kind for.
  KCOV_FAILURE_OTHER = 100,
  KCOV_FAILURE_UNSUPPORTED = 101,
  KCOV_FAILURE_NOT_BUILT_IN = 102,
  KCOV_FAILURE_DEBUGFS_NOT_MOUNTED = 103,
  KCOV_FAILURE_PERMISSION_DENIED = 104,
  KCOV_FAILURE_LOCKED_DOWN = 105,
  KCOV_FAILURE_NOT_KCOV = 106,
  KCOV_FAILURE_SIZE_OUT_OF_LIMITS = 107,
  KCOV_FAILURE_DESCRIPTOR_OUT_OF_LIMITS = 108,
  KCOV_FAILURE_THREAD_OUT_OF_LIMITS = 109,
  KCOV_FAILURE_BUFFER_LOST = 110,
  KCOV_FAILURE_MODE_NOT_BUILT_IN = 111,
  KCOV_FAILURE_NOT_INSTRUMENTED = 112,
  KCOV_FAILURE_ALREADY_ENABLED = 113,
  KCOV_FAILURE_NOT_ENABLED = 114,
  KCOV_FAILURE_OUT_OF_MEMORY = 115,
};

// A bounded set of the numbers that the kernel has compared with.
struct kcov_dictionary;

// Remembers which signals have been seen: exactly, in one bit per byte of kernel text.
struct kcov_novelty;

// An open device with its buffer. At most one thread at a time is traced into it.
struct kcov_session;

// The unique signals of one execution, in order of first occurrence.
struct kcov_set;

// Bytes for an input: the first `size` of `bytes`, which are 1, 2, 4 or 8.
struct kcov_token {
  uint8_t bytes[8];
  uint8_t size;
};

// Addresses from `start` to before `end`.
struct kcov_range {
  uint64_t start;
  uint64_t end;
};

// The text of the running Linux kernel, without modules.
struct kcov_text {
  // The addresses that Linux records: those of vmlinux.
  struct kcov_range link_time;
  // The addresses in /proc/kallsyms.
  struct kcov_range run_time;
  // The run-time address minus the link-time address, in bytes.
  uint64_t kaslr_offset;
};

// The records of a session. `words` is the first of `records * words_per_record` words in the
// buffer, or NULL under a 32-bit kernel: use kcov_session_copy there.
struct kcov_records {
  const uint64_t *words;
  size_t records;
  uint32_t words_per_record;
  // KCOV_RECORDS_COMPLETE, KCOV_RECORDS_TRUNCATED or KCOV_RECORDS_CORRUPT
  uint32_t completeness;
};

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes an empty dictionary that holds at most `capacity` numbers. NULL on failure.
struct kcov_dictionary *kcov_dictionary_new(size_t capacity);

// Adds the constants of comparisons, or both operands where neither is constant. `words` has four
// words for each record, as in a buffer. `filter` is 0 or KCOV_SKIP_EQUAL and its like. Returns
// how many comparisons added a number, or -1.
int64_t kcov_dictionary_add(struct kcov_dictionary *dictionary,
                            const uint64_t *words,
                            size_t records,
                            uint32_t filter);

// The number of tokens, or -1: each number with its least significant byte first, then in the
// other byte order if that differs. Stores the first `capacity` tokens to `out`.
int64_t kcov_dictionary_tokens(struct kcov_dictionary *dictionary,
                               struct kcov_token *out,
                               size_t capacity);

// How often a number did not fit, or -1.
int64_t kcov_dictionary_missed(struct kcov_dictionary *dictionary);

// Frees the dictionary. NULL does nothing.
void kcov_dictionary_free(struct kcov_dictionary *dictionary);

// The kind of the last failed call of this thread. A successful call does not change it.
enum kcov_failure kcov_last_failure(void);

// One sentence about the last failed call of this thread: the function, what was wrong, and what
// to do. Empty if no call has failed. Valid until the next failed call of this thread.
const char *kcov_last_message(void);

// Finds out which modes the kernel has, by enabling each in a thread of its own. `path` is the
// device's, or NULL for the system's. `modes` gets KCOV_RECORD_PC, KCOV_RECORD_CMP or both. 0, or
// -1 with the reason why kcov cannot be used.
int kcov_probe(const char *path, uint32_t *modes);

// Finds the text of the running kernel, which takes the right to read kernel addresses. Linux
// only. 0 or -1.
int kcov_text_read(struct kcov_text *text);

// The address in the kernel's file of a recorded program counter, given the KASLR offset.
uint64_t kcov_pc_link_time(uint64_t pc, uint64_t kaslr_offset);

// The address in the running kernel of a recorded program counter, given the KASLR offset.
uint64_t kcov_pc_run_time(uint64_t pc, uint64_t kaslr_offset);

// The call that returns to a recorded program counter. Ask addr2line(1) about this address,
// because the next one may belong to another line or function. Without a rule for the architecture
// it is the program counter.
uint64_t kcov_pc_call_site(uint64_t pc);

// Makes an empty map. In the ranges, such as the kernel's text, there is always room; outside them
// there is room for `fallback` signals, at most 2^20. NULL on failure.
struct kcov_novelty *kcov_novelty_new(const struct kcov_range *ranges,
                                      size_t count,
                                      size_t fallback);

// Opens the map in a file that processes share, such as a memfd. The file becomes long enough.
// While it is mapped, nobody may shorten it, and its file system must have room for it: otherwise
// the process gets SIGBUS. All must pass the same ranges and fallback. The descriptor stays the
// caller's, and may be closed. NULL on failure.
struct kcov_novelty *kcov_novelty_share(int fd,
                                        const struct kcov_range *ranges,
                                        size_t count,
                                        size_t fallback);

// Loads a private map that kcov_novelty_save saved. NULL on failure.
struct kcov_novelty *kcov_novelty_load(const char *path);

// Saves the map, also a shared one. Replaces the file at once, or leaves it. 0 or -1.
int kcov_novelty_save(struct kcov_novelty *map, const char *path);

// Whether any signal is new: 1 or 0; -1 on failure. Stops soon after the first new one.
int kcov_novelty_has_new(struct kcov_novelty *map, const uint64_t *signals, size_t count);

// Adds signals. Returns the number of new ones, or -1, and stores the first `capacity` of them to
// `out`, in order. `unrecorded`, unless it is NULL, gets the number of occurrences for which there
// was no room. Of processes that share the map, one sees each signal as new.
int64_t kcov_novelty_merge(struct kcov_novelty *map,
                           const uint64_t *signals,
                           size_t count,
                           uint64_t *out,
                           size_t capacity,
                           uint64_t *unrecorded);

// The number of signals in the map, or -1. Stores the first `capacity` of them to `out`, in
// ascending order.
int64_t kcov_novelty_signals(struct kcov_novelty *map, uint64_t *out, size_t capacity);

// Forgets all signals. A shared map loses those of all processes. 0 or -1.
int kcov_novelty_clear(struct kcov_novelty *map);

// Frees the map. Shared memory stays. NULL does nothing.
void kcov_novelty_free(struct kcov_novelty *map);

// Opens a device: the one at `path`, or the system's if that is NULL. `words` is the size of the
// buffer, or 0 for 262144 words. NULL with the reason why on failure.
struct kcov_session *kcov_session_open(const char *path, uint64_t words);

// Starts tracing of the calling thread, with no records. `mode` is KCOV_RECORD_PC or
// KCOV_RECORD_CMP. Until kcov_session_disable, only this thread may use the session. 0 or -1.
int kcov_session_enable(struct kcov_session *session, uint32_t mode);

// Ends tracing. The records stay in the buffer, and no longer change. 0 or -1.
int kcov_session_disable(struct kcov_session *session);

// Forgets the records of an enabled session, by one store. 0 or -1.
int kcov_session_reset(struct kcov_session *session);

// Describes the records in the buffer: those until now, or until kcov_session_disable. The words
// are valid until the session is enabled again or freed. While it is enabled the kernel appends to
// them; load them atomically. 0 or -1.
int kcov_session_records(struct kcov_session *session, struct kcov_records *out);

// Copies the words of the records, also the 32-bit words of a 32-bit kernel. Returns their number,
// or -1, and stores the first `capacity` of them to `out`.
int64_t kcov_session_copy(struct kcov_session *session, uint64_t *out, size_t capacity);

// Closes the device, and ends tracing of this thread. 0; -1 and nothing else if the session is
// NULL, in use, or another thread is traced.
int kcov_session_free(struct kcov_session *session);

// Makes an empty set with room for `capacity` signals, at most 2^24. Allocates all of it: 40 to 72
// bytes for each. NULL on failure.
struct kcov_set *kcov_set_new(size_t capacity);

// Adds signals. Returns the number of new ones, or -1. `unrecorded`, unless it is NULL, gets
// the number of occurrences for which there was no room.
int64_t kcov_set_add(struct kcov_set *set,
                     const uint64_t *signals,
                     size_t count,
                     uint64_t *unrecorded);

// The number of signals in the set, or -1. Stores the first `capacity` of them to `out`, in order
// of first occurrence.
int64_t kcov_set_signals(struct kcov_set *set, uint64_t *out, size_t capacity);

// Forgets all signals, in constant time, for the next execution. 0 or -1.
int kcov_set_clear(struct kcov_set *set);

// Frees the set. NULL does nothing.
void kcov_set_free(struct kcov_set *set);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* LIBKCOV_H */
