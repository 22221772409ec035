/* Prints its word for itself, its path, and a file beside its directory. */
#include <libgen.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char **argv) {
    char own[4096], path[8192], line[100];
    ssize_t length = readlink("/proc/self/exe", own, sizeof own - 1);
    if (argc < 2 || length < 0) return 1;
    own[length] = 0;
    printf("%s\n%s\n", argv[0], own);
    snprintf(path, sizeof path, "%s/%s", dirname(own), argv[1]);
    FILE *file = fopen(path, "r");
    if (!file || !fgets(line, sizeof line, file)) return perror(path), 2;
    fputs(line, stdout);
    return 0;
}
