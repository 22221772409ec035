/*
 * Executes a file of operations through kcov.h and compares each result with the one that the model
 * of the driver gives. Linux, 64 bits.
 *
 *	lockstep FILE
 *
 * A line has a slot, an operation, and arguments; numbers are decimal. A slot is a thread, and ROOT
 * is the first process, which is never traced. The threads pass a baton: each executes its lines
 * and wakes the one that has the next line.
 */
#define _GNU_SOURCE
#include "../kcov.h"
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { NAMES = 1024, ROOT = NAMES, FULL = 1 << 20, TRIES = 20000, WORDS_OF_PAGE = 512 };
enum { ARGUMENTS = 6 + KCOV_LINUX_MAX_HANDLES };

/* Shared by all processes. */
static struct shared {
	sem_t turn[NAMES + 1];
	long line, failed;
	pid_t pid[NAMES];
	pid_t giver; /* the process that passes a descriptor */
	int given;
} *shared;

/* The lines, read before the first fork. */
static char *lines[1 << 20];
static long line_count;

/* This process's objects, by name. */
static int fds[NAMES];
static struct {
	volatile uint64_t *words;
	size_t bytes;
	int is_private, is_writable;
	int fd_name;
} maps[NAMES];
static pthread_t threads[NAMES];

static void *serve(void *slot);

static int slot_of(long line)
{
	return line < line_count ? atoi(lines[line]) : ROOT;
}

/* Goes to the next line. */
static void next(void)
{
	sem_post(&shared->turn[slot_of(++shared->line)]);
}

static void fail(const char *what, long seen)
{
	printf("line %ld: %s: %s, %ld\n", shared->line + 1, lines[shared->line], what, seen);
	fflush(stdout);
	shared->failed = 1;
	shared->line = line_count;
	sem_post(&shared->turn[ROOT]);
	for (;;)
		pause();
}

static void expect(int is_as_expected, const char *what, long seen)
{
	if (!is_as_expected)
		fail(what, seen);
}

/* Compares the errno, or 0, of an operation that failed or not. */
static void refused(int is_refused, int expected)
{
	int error = is_refused ? errno : 0;

	expect(error == expected, "errno", error);
}

/* A device with this descriptor, and with a mapping of all of it if there is one. */
static struct kcov device(int name)
{
	struct kcov k;
	int map;

	memset(&k, 0, sizeof(k));
	k.width = 8;
	k.fd = fds[name];
	for (map = 0; map < NAMES && !k.buffer; map++)
		if (maps[map].words && maps[map].fd_name == name && maps[map].is_writable &&
		    !maps[map].is_private) {
			k.buffer = maps[map].words;
			k.words = maps[map].bytes / 8;
		}
	return k;
}

/* Stores a count that nothing is recorded at, so that mappings keep their words. */
static void hold(const struct kcov *k)
{
	if (k->buffer)
		kcov_store_count(k, 8, FULL);
}

/* Takes the descriptor that another process passes. */
static int taken(void)
{
	int process = (int)syscall(SYS_pidfd_open, shared->giver, 0);
	int fd = (int)syscall(SYS_pidfd_getfd, process, shared->given, 0);

	expect(fd >= 0, "take", errno);
	close(process);
	return fd;
}

/* The count stays the same if most is 0, does anything if it is UINT64_MAX, or grows up to it. */
static void trace(int map, uint64_t count, uint64_t most, unsigned mode)
{
	struct kcov k;
	struct kcov_trace before, after;
	int i, tries = most ? 1 : TRIES;

	memset(&k, 0, sizeof(k));
	k.width = 8;
	k.mode = mode;
	k.buffer = maps[map].words;
	k.words = maps[map].bytes / 8;
	for (i = 0; i < tries; i++) {
		/* The thread that records there may not be at rest yet. */
		if (i)
			sched_yield();
		if (maps[map].is_writable)
			kcov_store_count(&k, 8, count);
		before = kcov_read(&k);
		syscall(SYS_read, -1, NULL, 0);
		after = kcov_read(&k);
		if (before.count == after.count)
			break;
	}
	if (maps[map].is_writable)
		hold(&k);
	if (!most)
		expect(before.count == after.count, "the count", (long)after.count);
	else if (most < UINT64_MAX) {
		expect(before.count < after.count && after.count <= most, "the count", after.count);
		expect(after.capacity == most && after.length == after.count, "length", after.length);
		expect((after.state == KCOV_TRUNCATED) == (after.count == most), "state", after.state);
	}
}

static void map(int name, int fd_name, size_t bytes, long offset, int is_writable, int is_private,
		int expected)
{
	struct kcov k = device(fd_name);
	int is_whole = !offset && is_writable && !is_private && bytes % 8 == 0;
	void *start;

	if (is_whole) {
		k.words = bytes / 8;
		refused(kcov_map(&k), expected);
		start = (void *)(uintptr_t)k.buffer;
	} else {
		start = mmap(NULL, bytes, is_writable ? PROT_READ | PROT_WRITE : PROT_READ,
			     is_private ? MAP_PRIVATE : MAP_SHARED, fds[fd_name], offset);
		refused(start == MAP_FAILED, expected);
	}
	if (expected)
		return;
	maps[name].words = start;
	maps[name].bytes = (bytes + 4095) / 4096 * 4096;
	maps[name].is_private = is_private;
	maps[name].is_writable = is_writable;
	maps[name].fd_name = fd_name;
}

/* Makes an ioctl, if the word is one. Arguments: descriptor, errno, those of the ioctl. */
static int ask(const char *word, const uint64_t *a)
{
	static struct kcov_remote r;
	struct kcov k = device(a[0]);

	if (!strcmp(word, "size"))
		refused(kcov_set_size(&k, a[2]), a[1]);
	else if (!strcmp(word, "enable"))
		refused(kcov_enable(&k, a[2]), a[1]);
	else if (!strcmp(word, "disable"))
		refused(kcov_disable(&k), a[1]);
	else if (!strcmp(word, "request"))
		refused(kcov_request(&k, a[2], a[3]) < 0, a[1]);
	else if (!strcmp(word, "remote")) {
		r.mode = a[2];
		r.area = a[3];
		r.common = a[4];
		r.count = a[5];
		memcpy(r.handles, a + 6, sizeof(r.handles));
		refused(kcov_remote_enable(&k, &r), a[1]);
	} else
		return 0;
	hold(&k);
	return 1;
}

static void wait_for(int slot)
{
	struct pollfd fd = {(int)syscall(SYS_pidfd_open, shared->pid[slot], 0), POLLIN, 0};

	/* It may be gone already. */
	if (fd.fd >= 0) {
		expect(poll(&fd, 1, 60000) == 1, "a process that ends", 0);
		close(fd.fd);
	}
	while (waitpid(-1, NULL, WNOHANG) > 0)
		;
}

/* Executes a line. Returns whether the thread goes on. */
static int obey(char *text)
{
	uint64_t a[ARGUMENTS] = {0};
	char word[16];
	int used = 0, count;
	struct kcov k;

	sscanf(text, "%*d %15s%n", word, &used);
	text += used;
	for (count = 0; *text && count < ARGUMENTS; count++)
		a[count] = strtoull(text, &text, 10);
	if (ask(word, a))
		;
	else if (!strcmp(word, "open") && a[1] == O_RDWR) {
		kcov_open_file(&k, NULL);
		fds[a[0]] = k.fd;
	} else if (!strcmp(word, "open"))
		fds[a[0]] = open(KCOV_PATH, (int)a[1] | O_CLOEXEC);
	else if (!strcmp(word, "dup"))
		fds[a[1]] = dup(fds[a[0]]);
	else if (!strcmp(word, "pass")) {
		shared->giver = getpid();
		shared->given = fds[a[0]];
	} else if (!strcmp(word, "take"))
		fds[a[0]] = taken();
	else if (!strcmp(word, "close"))
		close(fds[a[0]]);
	else if (!strcmp(word, "map"))
		map(a[0], a[1], a[2], a[3], a[4], a[5], a[6]);
	else if (!strcmp(word, "unmap")) {
		munmap((void *)(uintptr_t)maps[a[0]].words, maps[a[0]].bytes);
		maps[a[0]].words = NULL;
	} else if (!strcmp(word, "protect")) {
		refused(mprotect((void *)(uintptr_t)maps[a[0]].words, maps[a[0]].bytes, a[1]), a[2]);
		if (!a[2])
			maps[a[0]].is_writable = (a[1] & PROT_WRITE) != 0;
	} else if (!strcmp(word, "trace"))
		trace(a[0], a[1], a[2], a[3]);
	else if (!strcmp(word, "store"))
		maps[a[0]].words[WORDS_OF_PAGE - 1] = a[1];
	else if (!strcmp(word, "load")) {
		uint64_t loaded = kcov_word(maps[a[0]].words, 8, WORDS_OF_PAGE - 1);

		expect(a[1] == UINT64_MAX || loaded == a[1], "the word", loaded);
	} else if (!strcmp(word, "thread"))
		expect(!pthread_create(&threads[a[0]], NULL, serve, (void *)a[0]), word, 0);
	else if (!strcmp(word, "end"))
		return 0;
	else if (!strcmp(word, "join"))
		expect(!pthread_join(threads[a[0]], NULL), word, 0);
	else if (!strcmp(word, "fork")) {
		pid_t child = fork();

		if (!child) {
			serve((void *)a[0]);
			_exit(0);
		}
		shared->pid[a[0]] = child;
	} else if (!strcmp(word, "exit")) {
		next();
		_exit(0);
	} else if (!strcmp(word, "kill")) {
		kill(shared->pid[a[0]], SIGKILL);
		wait_for(a[0]);
	} else if (!strcmp(word, "wait"))
		wait_for(a[0]);
	else
		fail("an unknown operation", 0);
	return 1;
}

/* Executes the lines of a slot until its thread ends. */
static void *serve(void *argument)
{
	int slot = (int)(intptr_t)argument;

	for (;;) {
		while (sem_wait(&shared->turn[slot]))
			;
		if (shared->line >= line_count)
			return NULL;
		if (!obey(lines[shared->line])) {
			next();
			return NULL;
		}
		next();
	}
}

int main(int argc, char **argv)
{
	FILE *file = argc == 2 ? fopen(argv[1], "r") : NULL;
	size_t room = 0;
	ssize_t length;
	int slot;

	while (file && (length = getline(&lines[line_count], &room, file)) > 0) {
		lines[line_count++][length - 1] = 0;
		room = 0;
	}
	shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (!line_count || shared == MAP_FAILED)
		return 2;
	for (slot = 0; slot <= ROOT; slot++)
		sem_init(&shared->turn[slot], 1, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	alarm(300);
	sem_post(&shared->turn[slot_of(0)]);
	serve((void *)(intptr_t)ROOT);
	for (slot = 0; slot < NAMES; slot++)
		if (shared->pid[slot] > 0)
			kill(shared->pid[slot], SIGKILL);
	if (!shared->failed)
		printf("%ld lines\n", line_count);
	return shared->failed != 0;
}
