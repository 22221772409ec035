/*
 * Runs a command and puts the edges of the kernel that it goes through into AFL++'s map.
 *
 *	AFL_NO_FORKSRV=1 AFL_SKIP_BIN_CHECK=1 afl-fuzz -i IN -o OUT -- showmap COMMAND [ARGUMENT...]
 *
 * AFL++ makes the map in shared memory and passes its number in __AFL_SHM_ID, and its size in
 * AFL_MAP_SIZE if it is not 65536. Without a map, prints the edges and their numbers, as
 * afl-showmap does. Ends as the command does, so that AFL++ sees a crash.
 */
#include "../kcov.h"
#include <signal.h>
#include <stdlib.h>
#include <sys/ipc.h>
#include <sys/shm.h>
#include <sys/wait.h>

static int fail(const char *what)
{
	fprintf(stderr, "showmap: %s\n", what);
	return 125;
}

int main(int argc, char **argv)
{
	const char *id = getenv("__AFL_SHM_ID"), *size = getenv("AFL_MAP_SIZE");
	size_t room = size ? strtoul(size, NULL, 10) : 65536, i, place;
	char text[KCOV_MESSAGE_MAX];
	unsigned char *map;
	struct kcov k;
	struct kcov_trace t;
	uint64_t pc, last = 0;
	int status;
	pid_t child;

	if (argc < 2 || !room)
		return fail("usage: showmap COMMAND [ARGUMENT...]");
	map = (unsigned char *)(id ? shmat(atoi(id), NULL, 0) : calloc(room, 1));
	if (!map || map == (unsigned char *)-1)
		return fail("no map");
	if (kcov_open(&k, NULL, 0))
		return fail(kcov_message(&k, text, sizeof(text)));
	child = fork();
	if (!child) {
		/* Else execve(2) would unmap it, page by page, in the trace. */
		kcov_unmap(&k);
		if (kcov_enable(&k, KCOV_PC))
			_exit(fail(kcov_message(&k, text, sizeof(text))));
		execvp(argv[1], argv + 1);
		_exit(fail(argv[1]));
	}
	if (child < 0 || waitpid(child, &status, 0) != child)
		return fail("no child");
	t = kcov_read(&k);
	for (i = 0; i < t.length; i++) {
		/* An edge is a pair of program counters, mixed so that the low bits depend on both. */
		pc = kcov_pc(&t, i);
		place = (size_t)(((pc ^ last << 1) * 0x9e3779b97f4a7c15ull >> 32) % room);
		map[place] += map[place] < 255;
		last = pc;
	}
	for (i = 0; !id && i < room; i++)
		if (map[i])
			printf("%06zu:%u\n", i, map[i]);
	if (t.state != KCOV_COMPLETE)
		fprintf(stderr, "showmap: the buffer was %s\n",
			t.state == KCOV_CORRUPT ? "overwritten" : "too small");
	kcov_close(&k);
	if (WIFSIGNALED(status))
		raise(WTERMSIG(status));
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
