/* Prints its effective user. */
#include <stdio.h>
#include <unistd.h>
int main(void) { return printf("%d\n", (int)geteuid()) < 0; }
