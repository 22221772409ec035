/* Prints what a library says that it opens. */
#include <dlfcn.h>
#include <stdio.h>
int main(int argc, char **argv) {
    void *library = argc > 1 ? dlopen(argv[1], RTLD_NOW) : 0;
    if (!library) return puts(dlerror()), 1;
    const char *(*name)(void) = dlsym(library, "name");
    return puts(name()) < 0;
}
