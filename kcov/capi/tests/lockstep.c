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
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>

enum { ROOT = 8, NAMES = 1024, FULL = 1 << 20, TRIES = 20000, WORDS_OF_PAGE = 512 };

/* Shared by all processes. */
static struct shared {
	sem_t turn[ROOT + 1];
	long line, failed;
	pid_t pid[ROOT];
} *shared;

/* The lines, read before the first fork. */
static char *lines[1 << 20];
static long line_count;
/* Sockets to pass descriptors. */
static int sockets[2];

/* This process's objects, by name. */
static int fds[NAMES];
static struct {
	volatile uint64_t *words;
	size_t bytes;
	int is_private, is_writable;
	int fd_name;
} maps[NAMES];
static pthread_t threads[ROOT];

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

static void pass(int fd, int *received)
{
	char byte = 0, control[CMSG_SPACE(sizeof(int))];
	struct iovec io = {&byte, 1};
	struct msghdr message;

	memset(&message, 0, sizeof(message));
	memset(control, 0, sizeof(control));
	message.msg_iov = &io;
	message.msg_iovlen = 1;
	message.msg_control = control;
	message.msg_controllen = sizeof(control);
	if (received) {
		expect(recvmsg(sockets[1], &message, 0) == 1, "recvmsg", errno);
		memcpy(received, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof(int));
		return;
	}
	CMSG_FIRSTHDR(&message)->cmsg_level = SOL_SOCKET;
	CMSG_FIRSTHDR(&message)->cmsg_type = SCM_RIGHTS;
	CMSG_FIRSTHDR(&message)->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(CMSG_FIRSTHDR(&message)), &fd, sizeof(int));
	expect(sendmsg(sockets[0], &message, 0) == 1, "sendmsg", errno);
}

/* Arguments: map, count, "unchanged", "grown" or "anything", and the maximum. */
static void trace(int map, uint64_t count, const char *outcome, uint64_t most, int mode)
{
	struct kcov k;
	struct kcov_trace before, after;
	int i, tries = strcmp(outcome, "unchanged") ? 1 : TRIES;

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
	if (!strcmp(outcome, "unchanged"))
		expect(before.count == after.count, "the count", (long)after.count);
	if (!strcmp(outcome, "grown")) {
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

/* Arguments: descriptor, errno, mode, area, common handle, number of handles, handles. */
static void remote(struct kcov *k, int expected, char *rest)
{
	static struct kcov_remote r;
	uint32_t i;

	memset(&r, 0, sizeof(r));
	r.mode = strtoul(rest, &rest, 10);
	r.area = strtoul(rest, &rest, 10);
	r.common = strtoull(rest, &rest, 10);
	r.count = strtoul(rest, &rest, 10);
	for (i = 0; i < r.count && i < KCOV_LINUX_MAX_HANDLES; i++)
		r.handles[i] = strtoull(rest, &rest, 10);
	refused(kcov_remote_enable(k, &r), expected);
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
static int obey(int slot, char *text)
{
	char word[16], *rest;
	long long a = 0, b = 0, c = 0, d = 0, e = 0, f = 0;
	unsigned long long number = 0;
	int used = 0;
	struct kcov k;

	sscanf(text, "%*d %15s%n", word, &used);
	rest = text + used;
	sscanf(rest, "%lld %lld %lld %lld %lld %lld", &a, &b, &c, &d, &e, &f);
	if (strchr("SEDRU", *word) && !word[1]) {
		k = device(a);
		sscanf(rest, "%*d %*d %llu", &number);
		if (*word == 'S')
			refused(kcov_set_size(&k, number), b);
		else if (*word == 'E' && number < 1 << 16)
			refused(kcov_enable(&k, number), b);
		else if (*word == 'E')
			refused(kcov_request(&k, KCOV_LINUX_ENABLE, number) < 0, b);
		else if (*word == 'D' && !number)
			refused(kcov_disable(&k), b);
		else if (*word == 'D')
			refused(kcov_request(&k, KCOV_LINUX_DISABLE, number) < 0, b);
		else if (*word == 'U') /* another request, which takes no argument from here */
			refused(kcov_request(&k, number, 512) < 0, b);
		else {
			sscanf(rest, "%*d %*d%n", &used);
			remote(&k, b, rest + used);
		}
		hold(&k);
	} else if (!strcmp(word, "open") && a) {
		kcov_open_file(&k, NULL);
		fds[b] = k.fd;
	} else if (!strcmp(word, "open"))
		fds[b] = open(KCOV_PATH, (c ? O_WRONLY : O_RDONLY) | O_CLOEXEC);
	else if (!strcmp(word, "dup"))
		fds[b] = dup(fds[a]);
	else if (!strcmp(word, "pass"))
		pass(fds[a], NULL);
	else if (!strcmp(word, "take"))
		pass(0, &fds[a]);
	else if (!strcmp(word, "close"))
		close(fds[a]);
	else if (!strcmp(word, "map"))
		map(a, b, c, d, e & 1, e >> 1 & 1, f);
	else if (!strcmp(word, "unmap")) {
		munmap((void *)(uintptr_t)maps[a].words, maps[a].bytes);
		maps[a].words = NULL;
	} else if (!strcmp(word, "protect")) {
		refused(mprotect((void *)(uintptr_t)maps[a].words, maps[a].bytes, b), c);
		if (!c)
			maps[a].is_writable = (b & PROT_WRITE) != 0;
	} else if (!strcmp(word, "trace")) {
		sscanf(rest, "%*d %llu %15s %lld %lld", &number, word, &c, &d);
		trace(a, number, word, c, d);
	} else if (!strcmp(word, "store"))
		maps[a].words[WORDS_OF_PAGE - 1] = b;
	else if (!strcmp(word, "load")) {
		uint64_t loaded = kcov_word(maps[a].words, 8, WORDS_OF_PAGE - 1);

		expect(b < 0 || loaded == (uint64_t)b, "the word", loaded);
	} else if (!strcmp(word, "thread"))
		expect(!pthread_create(&threads[a], NULL, serve, (void *)(intptr_t)a), word, 0);
	else if (!strcmp(word, "end"))
		return 0;
	else if (!strcmp(word, "join"))
		expect(!pthread_join(threads[a], NULL), word, 0);
	else if (!strcmp(word, "fork")) {
		shared->pid[a] = 0;
		pid_t child = fork();

		if (!child) {
			serve((void *)(intptr_t)a);
			_exit(0);
		}
		shared->pid[a] = child;
	} else if (!strcmp(word, "exit")) {
		next();
		_exit(0);
	} else if (!strcmp(word, "kill")) {
		kill(shared->pid[a], SIGKILL);
		wait_for(a);
	} else if (!strcmp(word, "wait"))
		wait_for(a);
	else
		fail("an unknown operation", 0);
	(void)slot;
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
		if (!obey(slot, lines[shared->line])) {
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
	if (!line_count || shared == MAP_FAILED || socketpair(AF_UNIX, SOCK_SEQPACKET, 0, sockets))
		return 2;
	for (slot = 0; slot <= ROOT; slot++)
		sem_init(&shared->turn[slot], 1, 0);
	prctl(PR_SET_CHILD_SUBREAPER, 1);
	alarm(300);
	sem_post(&shared->turn[slot_of(0)]);
	serve((void *)(intptr_t)ROOT);
	for (slot = 0; slot < ROOT; slot++)
		if (shared->pid[slot] > 0)
			kill(shared->pid[slot], SIGKILL);
	if (!shared->failed)
		printf("%ld lines\n", line_count);
	return shared->failed != 0;
}
