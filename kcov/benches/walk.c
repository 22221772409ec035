/* Walks a trace like a fuzzer in C, for comparison by the benchmark `instructions`. */
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

int main(int argc, char **argv)
{
	if (argc != 3 || strcmp(argv[1], "walk")) /* walk PASSES */
		return 2;
	unsigned long *cover = calloc(WORDS, sizeof(*cover));
	unsigned long passes = strtoul(argv[2], NULL, 10);

	cover[0] = WORDS - 1;
	for (unsigned long i = 1; i < WORDS; i++)
		cover[i] = TEXT + i * STEP;
	for (unsigned long pass = 0; pass < passes; pass++) {
		OBSERVE(cover);
		OBSERVE(walk(cover));
	}
	return 0;
}
