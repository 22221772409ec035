/* Prints the status of `system("exit 4")`. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
int main(void) {
    printf("%d\n", WEXITSTATUS(system("exit 4")));
    return 0;
}
