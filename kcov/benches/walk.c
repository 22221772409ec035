/* What a fuzzer in C does with a trace, for comparison by the benchmark `instructions`. */
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

/* Whether a PC is not in a map with a bit for each byte of text. */
static int novelty(const unsigned long *cover, const unsigned long *seen, unsigned long bytes)
{
	unsigned long n = __atomic_load_n(&cover[0], __ATOMIC_RELAXED);
	for (unsigned long i = 0; i < n; i++) {
		unsigned long offset = cover[i + 1] - TEXT;
		if (offset >= bytes || !(seen[offset / 64] >> offset % 64 & 1))
			return 1;
	}
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3) /* walk|novelty PASSES */
		return 2;
	unsigned long bytes = (unsigned long)WORDS * STEP;
	unsigned long *cover = calloc(WORDS, sizeof(*cover));
	unsigned long *seen = calloc(bytes / 64, sizeof(*seen));
	unsigned long passes = strtoul(argv[2], NULL, 10);

	cover[0] = WORDS - 1;
	for (unsigned long i = 1; i < WORDS; i++) {
		cover[i] = TEXT + i * STEP;
		seen[i * STEP / 64] |= 1UL << i * STEP % 64;
	}
	for (unsigned long pass = 0; pass < passes; pass++) {
		OBSERVE(cover);
		if (!strcmp(argv[1], "walk"))
			OBSERVE(walk(cover));
		else if (!strcmp(argv[1], "novelty"))
			OBSERVE(novelty(cover, seen, bytes));
		else
			return 2;
	}
	return 0;
}
