/*
 * Runs each case in a child of its own, and tells how much it covers.
 *
 *	forkserver <CASES
 *
 * A case is a line: two letters for each call, the first chooses the call and the second its path.
 * For each case the server prints the number of records, the number of program counters that no
 * earlier case had, and how the child ended.
 *
 * The device is opened once. Only the child is traced, and a child that dies is disabled by the
 * kernel, so the next one finds the device ready.
 */
#include "../kcov.h"
#include <stdlib.h>
#include <sys/wait.h>

/* Program counters seen so far: a hash table. One that is full would lose novelty, not memory. */
static uint64_t seen[1 << 20];

static int is_new(uint64_t pc)
{
	size_t place = (size_t)(pc * 0x9e3779b97f4a7c15ull >> 44), tries;

	for (tries = 0; tries < 64; tries++, place = (place + 1) % (1 << 20)) {
		if (seen[place] == pc)
			return 0;
		if (!seen[place]) {
			seen[place] = pc;
			return 1;
		}
	}
	return 0;
}

/* The code under test. */
static void run(const char *letters)
{
	static const char *const paths[] = {"/", "/dev/null", "/proc/self/status", "/none"};
	struct stat st;
	char byte;
	int fd;

	for (; letters[0] && letters[1]; letters += 2) {
		const char *path = paths[letters[1] % 4];

		switch (letters[0] % 4) {
		case 0:
			(void)stat(path, &st);
			break;
		case 1:
			fd = open(path, O_RDONLY);
			if (read(fd, &byte, 1) < 0)
				continue;
			break;
		case 2:
			(void)access(path, X_OK);
			break;
		default:
			abort();
		}
	}
}

int main(void)
{
	static char line[4096];
	struct kcov k;
	struct kcov_trace t;
	size_t i, news;
	int status;
	pid_t child;

	if (kcov_open(&k, NULL, 0)) {
		kcov_perror(&k, "forkserver");
		return 1;
	}
	while (fgets(line, sizeof(line), stdin)) {
		line[strcspn(line, "\n")] = 0;
		/* If the child dies before it enables, its trace is empty, not the last one. */
		kcov_reset(&k);
		child = fork();
		if (!child) {
			if (kcov_enable(&k, KCOV_PC))
				_exit(125);
			run(line);
			kcov_disable(&k);
			_exit(0);
		}
		if (child < 0 || waitpid(child, &status, 0) != child) {
			perror("forkserver");
			return 1;
		}
		t = kcov_read(&k);
		for (i = 0, news = 0; i < t.length; i++)
			news += is_new(kcov_pc(&t, i));
		printf("%zu records, %zu new, %s %d%s\n", t.length, news,
		       WIFEXITED(status) ? "status" : "signal",
		       WIFEXITED(status) ? WEXITSTATUS(status) : WTERMSIG(status),
		       t.state == KCOV_COMPLETE ? "" : t.state == KCOV_CORRUPT ? ", corrupt" : ", full");
		fflush(stdout);
	}
	kcov_close(&k);
	return 0;
}
