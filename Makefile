# One line each; what happens is in labkit/. `make` alone prints this list.
# Another Python: make setup PYTHON=python3.12
.DEFAULT_GOAL := help
.PHONY: help setup lab verify grade test check bench proof reset

PYTHON ?= python3
OUT    ?= out/grade
READY   = $(PYTHON) -m labkit.bootstrap
BIN     = .venv/bin
lesson  = $(if $(LESSON),--lesson $(LESSON))
target  = $(if $(TARGET),--target "$(TARGET)")

help:    ## this list
	@sed -n 's/^\([a-z]*\): *## /make \1\t/p' Makefile
setup:   ## make .venv and install everything the labs need
	@$(READY)
lab:     ## open JupyterLab on the first page (LAB_LANG=zh or en)
	@$(READY) && $(BIN)/statelab lab
verify:  ## check your own work (LESSON=22 TARGET=starter)
	@$(READY) && $(BIN)/statelab verify $(lesson) $(target)
grade:   ## grade a class (SUBMISSIONS=folder OUT=out/grade)
	@$(READY) && $(BIN)/statelab grade $(if $(SUBMISSIONS),"$(SUBMISSIONS)") --out "$(OUT)"
reset:   ## begin anew; your work is set aside, not deleted (LESSON=22)
	@$(READY) && $(BIN)/statelab workspace reset $(lesson)
test:    ## everything: the kit's tests, the browser, all notebooks
	@$(READY) dev && $(BIN)/python -m labkit.devgate test
check:   ## before a commit: form, types, generated files, both directions
	@$(READY) dev && $(BIN)/python -m labkit.devgate check
bench:   ## the benchmark table of docs/performance.md
	@$(READY) dev && $(BIN)/python -m tests.benchmarks
proof:   ## the full counts that `make test` runs in small
	@$(READY) dev && $(BIN)/python -m labkit.devgate proof
