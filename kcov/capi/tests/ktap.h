/* Results in the kernel's test protocol. */
#include <stdio.h>

static int ktap_count, ktap_failed;

static void ktap_begin(int tests)
{
	setvbuf(stdout, NULL, _IOLBF, 0);
	printf("KTAP version 1\n1..%d\n", tests);
}

static void ktap(int is_ok, const char *name)
{
	ktap_failed += !is_ok;
	printf("%s %d %s\n", is_ok ? "ok" : "not ok", ++ktap_count, name);
}
