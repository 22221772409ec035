/*
 * Prints the program counters of the kernel that a command goes through, in its first thread.
 *
 *	kcovtrace COMMAND [ARGUMENT...]
 *
 * Tracing survives execve(2), so the child enables and becomes the command. The parent shares the
 * buffer and reads it when the command has ended. Ends as the command does; 125 is its own failure.
 */
#include "../kcov.h"
#include <stdlib.h>
#include <sys/wait.h>

static void check(const struct kcov *k, enum kcov_kind kind)
{
	if (kind) {
		kcov_perror(k, "kcovtrace");
		exit(125);
	}
}

int main(int argc, char **argv)
{
	struct kcov k;
	struct kcov_trace t;
	enum kcov_kind kind;
	size_t i;
	int status;
	pid_t child;

	if (argc < 2) {
		fprintf(stderr, "usage: kcovtrace COMMAND [ARGUMENT...]\n");
		return 125;
	}
	/* 32 MiB, or the maximum where it is less. */
	i = kcov_max_words(8);
	kind = kcov_open(&k, NULL, i < 4 << 20 ? i : 4 << 20);
	check(&k, kind);
	child = fork();
	if (!child) {
		/* Else execve(2) would unmap it, page by page, in the trace. */
		kcov_unmap(&k);
		kind = kcov_enable(&k, KCOV_PC);
		check(&k, kind);
		execvp(argv[1], argv + 1);
		perror(argv[1]);
		_exit(125);
	}
	if (child < 0 || waitpid(child, &status, 0) != child) {
		perror("kcovtrace");
		return 125;
	}
	t = kcov_read(&k);
	for (i = 0; i < t.length; i++)
		printf("0x%016llx\n", (unsigned long long)kcov_pc(&t, i));
	if (t.state != KCOV_COMPLETE)
		fprintf(stderr, "kcovtrace: %s\n", t.state == KCOV_CORRUPT ?
			"the command has overwritten the buffer" : "the buffer was too small");
	kcov_close(&k);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
