/*
 * Walks a trace like a fuzzer in C, by hand and through kcov.h, for comparison by the benchmark
 * `instructions`.
 */
#include "../capi/kcov.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { WORDS = 65536, STEP = 80 };

static const unsigned long TEXT = 0xffffffff81000000UL;

/* Keeps the buffer and the results observable, so that each pass happens. */
#define OBSERVE(x) __asm__ volatile("" : : "r"(x) : "memory")

static unsigned long walk(const unsigned long *cover)
{
	unsigned long n = __atomic_load_n(&cover[0], __ATOMIC_RELAXED);
	unsigned long all = 0;
	for (unsigned long i = 0; i < n; i++)
		all ^= cover[i + 1];
	return all;
}

/* Loads each word once, as a reader must whose buffer somebody may write to. */
static unsigned long walk_atomic(const unsigned long *cover)
{
	unsigned long n = __atomic_load_n(&cover[0], __ATOMIC_RELAXED);
	unsigned long all = 0;
	for (unsigned long i = 0; i < n; i++)
		all ^= __atomic_load_n(&cover[i + 1], __ATOMIC_RELAXED);
	return all;
}

static unsigned long walk_header(const unsigned long *cover)
{
	struct kcov_trace t = kcov_trace_of(cover, WORDS * sizeof(*cover), sizeof(*cover), KCOV_PC);
	unsigned long all = 0;
	for (size_t i = 0; i < t.length; i++)
		all ^= kcov_pc(&t, i);
	return all;
}

int main(int argc, char **argv)
{
	/* WALK PASSES */
	static const char *const names[] = {"walk", "walk-atomic", "walk-header"};
	static unsigned long (*const walks[])(const unsigned long *) = {walk, walk_atomic, walk_header};
	int chosen = 0;
	while (argc == 3 && chosen < 3 && strcmp(argv[1], names[chosen]))
		chosen++;
	if (argc != 3 || chosen == 3)
		return 2;
	unsigned long *cover = calloc(WORDS, sizeof(*cover));
	unsigned long passes = strtoul(argv[2], NULL, 10);

	cover[0] = WORDS - 1;
	for (unsigned long i = 1; i < WORDS; i++)
		cover[i] = TEXT + i * STEP;
	for (unsigned long pass = 0; pass < passes; pass++) {
		OBSERVE(cover);
		OBSERVE(walks[chosen](cover));
	}
	return 0;
}
