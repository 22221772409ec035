/* Prints what its libraries say, and runs another program. */
#include <stdio.h>
#include <unistd.h>
const char *name(void);
int own(void);
int main(int argc, char **argv) {
    printf("%s %d\n", name(), own());
    fflush(stdout);
    if (argc > 1) return execv(argv[1], (char *[]){argv[1], 0});
    return 0;
}
