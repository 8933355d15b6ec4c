"""One mechanism a module, all of one shape: frozen parameters, a guarantee without data, a release."""
